package phishing

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// Findings are what Inspect found in the HTML of a template. Each value is in a list once, in order of appearance.
type Findings struct {
	Replaced []string // links that the simulated email replaces with the tracked one
	Removed  []string // what the simulated email omits, such as "base"
	Remote   []string // URLs of images and other content that the email loads from elsewhere
}

// add appends a value to one of the lists, unless it is there.
func add(list *[]string, value string) {
	if value = strings.TrimSpace(value); value != "" && !slices.Contains(*list, value) {
		*list = append(*list, value)
	}
}

// rewriter replaces the links of an HTML text. It works on tags and keeps the rest of the text byte for byte, because
// email programs differ in how they read it: Outlook, for example, reads conditional comments.
type rewriter struct {
	page    string          // the tracked URL
	anchors map[string]bool // names of places in the text, to which links with "#" lead
	added   int             // elements of the footer (see track)
	found   Findings
	// bodyEnd is the position of the last end tag of the body in the result of rewrite; -1 for none.
	bodyEnd int
}

// newRewriter returns a rewriter of an HTML text.
func newRewriter(text, page string) *rewriter {
	r := &rewriter{page: page, anchors: map[string]bool{}}
	z := html.NewTokenizer(strings.NewReader(text))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		for _, a := range z.Token().Attr {
			if a.Key == "id" || a.Key == "name" {
				r.anchors[a.Val] = true
			}
		}
	}
	return r
}

// rewrite returns an HTML text in which every link leads to the page: links of tags, of conditional comments, and web
// addresses in the text, of which email programs make links. It omits what would lead elsewhere or run (see unsafe), and
// a tag or a comment without an end, which email programs do not show.
func (r *rewriter) rewrite(text string) string {
	var b strings.Builder
	r.bodyEnd = -1
	r.each(text, false, func(kind html.TokenType, rewritten string) {
		switch {
		case kind == html.EndTagToken && strings.HasPrefix(strings.ToLower(rewritten), "</body"):
			r.bodyEnd = b.Len()
		case kind == html.CommentToken && isOpen(rewritten):
			return
		}
		b.WriteString(rewritten)
	})
	return b.String()
}

// each calls write with every token of an HTML text as it is to be written, except a tag without an end. inLink says that
// addresses in the text stay as they are, as in a link.
func (r *rewriter) each(text string, inLink bool, write func(html.TokenType, string)) {
	z := html.NewTokenizer(strings.NewReader(text))
	element := "" // the last start tag, if the text after it is no HTML
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		raw := string(z.Raw()) // before z.Token, which may change the bytes
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			inLink = inLink || t.Data == "a"
			element = t.Data
			write(kind, r.tag(raw, t))
			continue
		case html.EndTagToken:
			t := z.Token()
			inLink = inLink && t.Data != "a"
			if t.Data != "script" {
				write(kind, raw)
			}
		case html.TextToken:
			write(kind, r.text(raw, element, inLink))
			continue // a text may follow a text
		case html.CommentToken:
			write(kind, r.comment(raw))
		default:
			write(kind, raw)
		}
		element = ""
	}
}

// tag returns a start tag as it is to be written; raw if nothing of it changes.
func (r *rewriter) tag(raw string, t html.Token) string {
	if unsafe(t.Data, t.Attr) {
		add(&r.found.Removed, t.Data)
		return ""
	}
	attributes, changed := r.attributes(t.Data, t.Attr)
	if !changed {
		return raw
	}
	t.Attr = attributes
	return t.String()
}

// unsafe reports whether an element is omitted: it would lead elsewhere or run.
func unsafe(tag string, attributes []html.Attribute) bool {
	return tag == "base" || tag == "script" || tag == "meta" && slices.ContainsFunc(attributes, func(a html.Attribute) bool {
		return a.Key == "http-equiv" && strings.EqualFold(strings.TrimSpace(a.Val), "refresh")
	})
}

// attributes returns the attributes of an element as they are to be written, and whether any changed.
func (r *rewriter) attributes(tag string, all []html.Attribute) (kept []html.Attribute, changed bool) {
	hasAction := false
	for _, a := range all {
		switch roleOf(tag, nameOf(a)) {
		case isLink:
			hasAction = hasAction || a.Key == "action"
			if !r.staysHere(a.Val) {
				r.noteReplaced(a.Val)
				a.Val, changed = r.page, true
			}
		case isUnsafe:
			add(&r.found.Removed, tag+" "+nameOf(a))
			changed = true
			continue
		case isField: // what is typed is not even sent
			changed = true
			continue
		case isContent:
			r.noteRemote(a.Val)
		case isStyle:
			r.noteRemoteOfStyle(a.Val)
		}
		kept = append(kept, a)
	}
	if tag == "form" && !hasAction {
		kept, changed = append(kept, html.Attribute{Key: "action", Val: r.page}), true
	}
	return kept, changed
}

// staysHere reports whether a link need not be replaced: it leads to the page, reports the email, or leads to a place in
// the email.
func (r *rewriter) staysHere(link string) bool {
	place, isPlace := strings.CutPrefix(link, "#")
	return link == r.page || link == reportURL(r.page) || isPlace && place != "" && r.anchors[place]
}

// nameOf returns the name of an attribute as a tag has it, with its prefix.
func nameOf(a html.Attribute) string {
	if a.Namespace != "" {
		return a.Namespace + ":" + a.Key
	}
	return a.Key
}

// role is what an attribute does.
type role int

// The roles of attributes.
const (
	isHarmless role = iota
	isLink          // its URL is followed after a click
	isContent       // its URL is loaded and shown
	isStyle
	isField  // it names a field of a form
	isUnsafe // it loads or runs something that may lead elsewhere
)

// roleOf returns the role of an attribute. VML is the markup of Outlook for shapes, such as buttons.
func roleOf(tag, name string) role {
	switch name {
	case "href", "xlink:href":
		switch tag {
		case "link", "image", "use", "feimage", "v:fill", "v:imagedata", "v:stroke":
			return isContent
		}
		return isLink
	case "o:href", "o:althref":
		switch tag {
		case "v:fill", "v:imagedata", "v:stroke": // the URL of the picture
			return isUnsafe
		}
		return isLink
	case "action", "formaction":
		return isLink
	case "src":
		switch tag {
		case "iframe", "frame", "embed":
			return isUnsafe
		}
		return isContent
	case "srcset", "background", "poster", "lowsrc", "dynsrc":
		return isContent
	case "style":
		return isStyle
	case "name":
		switch tag {
		case "input", "select", "textarea", "button":
			return isField
		}
	case "data":
		if tag == "object" {
			return isUnsafe
		}
	case "ping", "srcdoc", "manifest", "codebase", "classid":
		return isUnsafe
	}
	if strings.HasPrefix(name, "on") { // runs at an event
		return isUnsafe
	}
	return isHarmless
}

var (
	remoteURL   = regexp.MustCompile(`(?i)^\s*(?:https?:)?//`)
	remoteStyle = regexp.MustCompile(`(?i)(?:url\(|@import)\s*["']?((?:https?:)?//[^\s"')]+)`)
)

// noteRemote adds the URL of a content to the findings if it is loaded from elsewhere.
func (r *rewriter) noteRemote(url string) {
	if remoteURL.MatchString(url) && !strings.HasPrefix(url, r.page) {
		add(&r.found.Remote, url)
	}
}

// noteRemoteOfStyle adds the URLs in a style to the findings.
func (r *rewriter) noteRemoteOfStyle(style string) {
	for _, match := range remoteStyle.FindAllStringSubmatch(style, -1) {
		r.noteRemote(match[1])
	}
}

// text returns a text as it is to be written. element is the element whose content it is, if that may be no HTML.
func (r *rewriter) text(raw, element string, inLink bool) string {
	switch element {
	case "script":
		return ""
	case "style":
		r.noteRemoteOfStyle(raw)
		return r.nested(raw, true /* in link */)
	case "iframe", "noembed", "noframes", "noscript", "plaintext", "textarea", "title", "xmp":
		return r.nested(raw, true /* in link */) // HTML for programs that do not know the element
	}
	if inLink {
		return raw
	}
	var b strings.Builder
	end := 0 // of what is written
	text, offsets := unescape(raw)
	for _, a := range addresses(text) {
		r.noteReplaced(text[a.start:a.end])
		from, to := offsets[a.start], offsets[a.end]
		b.WriteString(raw[end:from] + `<a href="` + html.EscapeString(r.page) + `">` + raw[from:to] + "</a>")
		end = to
	}
	return b.String() + raw[end:]
}

// reference matches a character reference, with letters and digits that may follow it.
var reference = regexp.MustCompile(`&(?:#(?:[xX][0-9a-fA-F]+|[0-9]+);?|[a-zA-Z][a-zA-Z0-9]{0,31};?)`)

// unescape returns a text of HTML with its character references replaced, and the offset in raw of each byte and of the
// end.
func unescape(raw string) (text string, offsets []int) {
	var b strings.Builder
	write := func(text string, offset, step int) {
		b.WriteString(text)
		for i := range len(text) {
			offsets = append(offsets, offset+i*step)
		}
	}
	end := 0
	for _, found := range reference.FindAllStringIndex(raw, -1) {
		write(raw[end:found[0]], end, 1)
		name := raw[found[0]:found[1]]
		whole, size := html.UnescapeString(name), len(name)
		for n := range size { // the shortest prefix that is the reference: "&copy" of "&copyright"
			if html.UnescapeString(name[:n])+name[n:] == whole {
				size = n
				break
			}
		}
		write(html.UnescapeString(name[:size]), found[0], 0)
		write(name[size:], found[0]+size, 1)
		end = found[1]
	}
	write(raw[end:], end, 1)
	return b.String(), append(offsets, len(raw))
}

// noteReplaced adds a link that is replaced to the findings, unless it is one of the email's own.
func (r *rewriter) noteReplaced(url string) {
	if url != r.page && !strings.HasPrefix(url, r.page+"/") {
		add(&r.found.Replaced, url)
	}
}

// comment returns a comment as it is to be written. The links of conditional comments are replaced.
func (r *rewriter) comment(raw string) string {
	content, isComment := strings.CutPrefix(raw, "<!--")
	content, isWhole := strings.CutSuffix(content, "-->")
	if isComment && isWhole && strings.HasPrefix(strings.TrimSpace(content), "[if") {
		return "<!--" + r.nested(content, false) + "-->"
	}
	return raw
}

// isOpen reports whether a comment has no end. Browsers also take markup such as <![if !mso]> for a comment.
func isOpen(comment string) bool {
	if strings.HasPrefix(comment, "<!--") {
		return !strings.HasSuffix(comment, "-->") && !strings.HasSuffix(comment, "--!>")
	}
	return !strings.HasSuffix(comment, ">")
}

// conditionEnd matches the markup that ends a conditional comment.
var conditionEnd = regexp.MustCompile(`(?i)<!\[\s*endif\s*\]`)

// nested returns the HTML text in another one, such as a comment, with its links replaced (see each).
func (r *rewriter) nested(text string, inLink bool) string {
	var b strings.Builder
	r.each(text, inLink, func(kind html.TokenType, rewritten string) {
		if kind == html.CommentToken && isOpen(rewritten) && strings.HasPrefix(rewritten, "<!--") {
			// In <!-- <![endif]--> it ends the conditional comment.
			rewritten = conditionEnd.FindString(rewritten)
		}
		b.WriteString(rewritten)
	})
	return b.String()
}

// addressStart matches the start of a web address in a text.
var addressStart = regexp.MustCompile(`(?i)\b(?:(?:https?|ftp)://|www\.)`)

// span is a part of a text.
type span struct{ start, end int }

// addresses finds the web addresses in a text. Punctuation that may follow an address in a sentence does not belong to
// it, nor does a trailing slash.
func addresses(text string) (found []span) {
	for from := 0; ; {
		match := addressStart.FindStringIndex(text[from:])
		if match == nil {
			return found
		}
		start, least := from+match[0], from+match[1]
		end := least + addressEnd(text[least:])
		end = start + len(strings.TrimRight(text[start:end], "/.,;:!?'’»*"))
		if end > least { // not only "http://"
			found = append(found, span{start, end})
		}
		from = max(end, least)
	}
}

// addressEnd returns the position of the first character of a text that ends an address: one that cannot be in one, or a
// closing bracket that is not opened before it.
func addressEnd(text string) int {
	round, square := 0, 0
	for i, r := range text {
		switch r {
		case '<', '>', '"':
			return i
		case '(':
			round++
		case ')':
			round--
		case '[':
			square++
		case ']':
			square--
		}
		if unicode.IsSpace(r) || round < 0 || square < 0 {
			return i
		}
	}
	return len(text)
}

// rewriteText returns a plain text in which every web address is the page.
func rewriteText(text, page string) string {
	var b strings.Builder
	end := 0
	for _, a := range addresses(text) {
		b.WriteString(text[end:a.start] + page)
		end = len(text) - len(strings.TrimLeft(text[a.end:], "/")) // a slash there belongs to the address
	}
	return b.String() + text[end:]
}
