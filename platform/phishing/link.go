package phishing

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// link is the first link of an HTML text: its tag, which is at the bytes from start to end, and the index of its
// attribute href.
type link struct {
	start, end int
	tag        html.Token
	href       int
}

// address returns the target of the link.
func (l *link) address() string { return l.tag.Attr[l.href].Val }

// firstLink returns the first link that a reader of the HTML text can follow; false if there is none. Links in comments
// do not count, though some mail programs parse comments.
func firstLink(text string) (l link, ok bool) {
	z := html.NewTokenizer(strings.NewReader(text))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		l.start, l.end = l.end, l.end+len(z.Raw())
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		l.tag = z.Token()
		if l.tag.Data != "a" && l.tag.Data != "area" {
			continue
		}
		for i, a := range l.tag.Attr {
			if a.Key == "href" {
				l.href = i
				return l, true
			}
		}
	}
	return link{}, false
}

// rewriteLinks replaces the address of the first link of an HTML text with page, and every occurrence of this address
// in the plain text. Without a link in the HTML it returns both unchanged.
func rewriteLinks(body, text, page string) (trackedBody, trackedText string) {
	l, ok := firstLink(body)
	if !ok {
		return body, text
	}
	text = replaceAddress(text, l.address(), page)
	l.tag.Attr[l.href].Val = page
	return body[:l.start] + l.tag.String() + body[l.end:], text
}

// webAddress matches an absolute web address, up to a character that cannot be in one.
var webAddress = regexp.MustCompile(`(?i)https?://[^\s<>"]+`)

// replaceAddress replaces a web address in a plain text with page. Longer addresses that start with it stay, and so
// does everything if address is not a web address, such as "#".
func replaceAddress(text, address, page string) string {
	if webAddress.FindString(address) != address {
		return text
	}
	address = trimAddress(address)
	return webAddress.ReplaceAllStringFunc(text, func(found string) string {
		trimmed := trimAddress(found)
		if trimmed != address {
			return found
		}
		return page + strings.TrimLeft(found[len(trimmed):], "/") // a slash there belongs to the address
	})
}

// trimAddress removes punctuation that may follow an address in a sentence, and a trailing slash.
func trimAddress(address string) string { return strings.TrimRight(address, "/.,;:!?)]'’»*") }
