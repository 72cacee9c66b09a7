package phishing

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// link is the first link of an HTML text: the bytes of its tag, the tag, and the index of its address attribute.
type link struct {
	start, end int
	tag        html.Token
	href       int
}

// address returns the target of the link.
func (l *link) address() string { return l.tag.Attr[l.href].Val }

// firstLink finds the first link that a reader of the HTML text can follow. It ignores comments, though some mail
// programs look into those.
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

// rewriteLinks redirects the first link of an HTML text to the page, and every occurrence of the same web address
// in the plain text.
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
		bare := trimAddress(found)
		if bare != address {
			return found
		}
		return page + strings.TrimLeft(found[len(bare):], "/")
	})
}

// trimAddress removes punctuation that may follow an address in a sentence, and a trailing slash.
func trimAddress(address string) string { return strings.TrimRight(address, "/.,;:!?)]'’»*") }
