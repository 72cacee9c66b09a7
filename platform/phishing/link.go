package phishing

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// link is the first link of an HTML text: the bytes of its tag, the tag, and
// which of its attributes is the address.
type link struct {
	start, end int
	tag        html.Token
	href       int
}

// address is the address that the link leads to.
func (l *link) address() string { return l.tag.Attr[l.href].Val }

// firstLink finds the first link that a reader of the HTML text can follow. What
// stands in a comment is none, though some mail programs look into those.
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

// rewriteLinks makes the first link of an HTML text lead to the page, and so all in the
// plain text beside it that names the same web address.
func rewriteLinks(body, text, page string) (trackedBody, trackedText string) {
	l, ok := firstLink(body)
	if !ok {
		return body, text
	}
	text = replaceAddress(text, l.address(), page)
	l.tag.Attr[l.href].Val = page
	return body[:l.start] + l.tag.String() + body[l.end:], text
}

// webAddress is an absolute address of the web, up to what cannot be in one.
var webAddress = regexp.MustCompile(`(?i)https?://[^\s<>"]+`)

// replaceAddress puts page in the place of a web address in a plain text. What
// the address is only the beginning of stays, and so does everything where the
// address is none of the web, such as "#".
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

// trimAddress is a web address without what may follow it in a sentence, and
// without a slash at its end.
func trimAddress(address string) string { return strings.TrimRight(address, "/.,;:!?)]'’»*") }
