package mail

import (
	"bytes"
	"encoding/base64"
	"fmt"
	netmail "net/mail"
	"strings"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
	"golang.org/x/net/idna"
)

// wire is a message in the format of mail servers and files.
type wire struct {
	id        string
	from, to  netmail.Address // with encoded domains, without names
	recipient string          // the address of the recipient, before its domain was encoded
	data      []byte
}

// toWire renders the message. The error is a *RefusedError if the recipient's address is invalid, but not if the
// sender's is: the operator can correct that.
func (m Message) toWire() (wire, error) {
	to, err := netmail.ParseAddress("<" + m.To + ">")
	if err == nil {
		err = encodeDomain(to)
	}
	if err != nil {
		return wire{}, &RefusedError{Reason: fmt.Sprintf("the address cannot be written to: %v", err)}
	}

	from := m.From
	if err := encodeDomain(&from); err != nil {
		return wire{}, fmt.Errorf("the sender cannot be written as an address: %w", err)
	}
	out := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	out.ToMailAddress(to)
	if fitsHeader(from.Name) {
		out.FromMailAddress(&from)
	} else {
		out.SetGenHeaderPreformatted("From", encodedWords(from.Name)+"\r\n <"+from.Address+">")
	}
	if fitsHeader(m.Subject) {
		out.Subject(m.Subject)
	} else {
		out.SetGenHeaderPreformatted("Subject", encodedWords(m.Subject))
	}
	if m.ReplyTo != "" {
		replies := netmail.Address{Address: m.ReplyTo}
		if err := encodeDomain(&replies); err != nil {
			return wire{}, fmt.Errorf("the address for replies: %w", err)
		}
		out.ReplyToMailAddress(&replies)
	}
	out.SetDateWithValue(m.At)
	out.SetMessageIDWithValue(m.ID + "@" + domainOf(from.Address))
	out.SetGenHeader(gomail.HeaderContentLang, m.Language.Tag())
	if m.Automatic {
		out.SetGenHeader("Auto-Submitted", "auto-generated")
	}

	for name, value := range m.Headers {
		out.SetGenHeader(gomail.Header(name), value)
	}

	out.SetBodyString(gomail.TypeTextPlain, m.Text)
	out.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	for _, f := range m.Files {
		add, options := out.AttachReader, []gomail.FileOption{gomail.WithFileContentType(gomail.ContentType(f.Type))}
		if f.Inline {
			add, options = out.EmbedReader, append(options, gomail.WithFileContentID("<"+f.Name+inlineDomain+">"))
		}
		if err := add(f.Name, bytes.NewReader(f.Data), options...); err != nil {
			return wire{}, fmt.Errorf("attach %s: %w", f.Name, err)
		}
	}

	var data bytes.Buffer
	if _, err := out.WriteTo(&data); err != nil {
		return wire{}, fmt.Errorf("lay out a message: %w", err)
	}
	from.Name = "" // only the header has the name
	return wire{id: m.ID, from: from, to: *to, recipient: m.To, data: data.Bytes()}, nil
}

// inlineDomain ends the Content-ID of an inline file, which has the form of an address (RFC 2392).
const inlineDomain = "@inline"

// InlineURL returns the URL by which the HTML of a message shows an inline file.
func InlineURL(name string) string { return "cid:" + name + inlineDomain }

// encodeDomain converts the domain of an address to ASCII (punycode), which every mail server supports. It leaves the
// local part, which has no such form.
func encodeDomain(a *netmail.Address) error {
	host := domainOf(a.Address)
	if isASCII(host) {
		return nil
	}
	encoded, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return fmt.Errorf("its domain: %w", err)
	}
	a.Address = strings.TrimSuffix(a.Address, host) + encoded
	return nil
}

// needsSMTPUTF8 reports whether an address with an encoded domain needs the extension SMTPUTF8 (RFC 6531): its local
// part is not in ASCII.
func needsSMTPUTF8(a netmail.Address) bool { return !isASCII(a.Address) }

// isASCII reports whether a text has only ASCII characters.
func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// domainOf returns the part of an address after its last "@".
func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

const (
	// maxWord bounds an encoded word: with the name of any header before it, a line has no
	// more than the 76 characters that RFC 2047 allows.
	maxWord = 64
	// wordBegin and wordEnd enclose the text of an encoded word.
	wordBegin, wordEnd = "=?UTF-8?B?", "?="
)

// wordBytes is the number of bytes of text in an encoded word.
var wordBytes = base64.StdEncoding.DecodedLen(maxWord - len(wordBegin) - len(wordEnd))

// fitsHeader reports whether a header can contain the text unencoded: it is ASCII, and no word is longer than maxWord.
// (Before a longer word the library would break the line, and leave the header's first line empty.)
func fitsHeader(text string) bool {
	for word := range strings.SplitSeq(text, " ") {
		if len(word) > maxWord {
			return false
		}
	}
	return isASCII(text)
}

// encodedWords encodes a text as encoded words of RFC 2047, one per line.
func encodedWords(text string) string {
	var words []string
	part := ""
	endWord := func() {
		words = append(words, wordBegin+base64.StdEncoding.EncodeToString([]byte(part))+wordEnd)
		part = ""
	}
	for _, r := range text {
		if len(part)+len(string(r)) > wordBytes {
			endWord()
		}
		part += string(r)
	}
	endWord()
	return strings.Join(words, "\r\n ")
}
