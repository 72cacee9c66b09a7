package mail

import (
	"bytes"
	"fmt"
	netmail "net/mail"
	"strings"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
	"golang.org/x/net/idna"
)

// wire is a message as servers and files get it.
type wire struct {
	id       string
	from, to netmail.Address // encoded, without names
	asked    string          // the reader's address as it was before
	data     []byte
}

// wire makes the message ready. One whose reader cannot be is refused; a sender
// that cannot be is the configuration's fault.
func (m Message) wire() (wire, error) {
	to, err := netmail.ParseAddress("<" + m.To + ">")
	if err == nil {
		err = encode(to)
	}
	if err != nil {
		return wire{}, &RefusedError{Reason: fmt.Sprintf("the address cannot be written to: %v", err)}
	}

	from := m.From
	if err := encode(&from); err != nil {
		return wire{}, fmt.Errorf("the sender cannot be written as an address: %w", err)
	}
	out := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	out.ToMailAddress(to)
	if fits(from.Name) {
		out.FromMailAddress(&from)
	} else {
		out.SetGenHeaderPreformatted("From", encodedWords(from.Name)+"\r\n <"+from.Address+">")
	}
	if fits(m.Subject) {
		out.Subject(m.Subject)
	} else {
		out.SetGenHeaderPreformatted("Subject", encodedWords(m.Subject))
	}
	out.SetDateWithValue(m.At)
	out.SetMessageIDWithValue(m.ID + "@" + domainOf(from.Address))
	out.SetGenHeader(gomail.HeaderContentLang, m.Language.Tag())
	if m.Automatic {
		out.SetGenHeader("Auto-Submitted", "auto-generated")
	}

	out.SetBodyString(gomail.TypeTextPlain, m.Text)
	out.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	for _, f := range m.Files {
		err := out.AttachReader(f.Name, bytes.NewReader(f.Data), gomail.WithFileContentType(gomail.ContentType(f.Type)))
		if err != nil {
			return wire{}, fmt.Errorf("attach %s: %w", f.Name, err)
		}
	}

	var data bytes.Buffer
	if _, err := out.WriteTo(&data); err != nil {
		return wire{}, fmt.Errorf("lay out a message: %w", err)
	}
	from.Name = ""
	return wire{id: m.ID, from: from, to: *to, asked: m.To, data: data.Bytes()}, nil
}

// encode makes an address one that every mail server understands: its domain,
// where that has other letters than those of ASCII, in the form of the domain
// name system. A local part has no such form (international).
func encode(a *netmail.Address) error {
	host := domainOf(a.Address)
	if ascii(host) {
		return nil
	}
	encoded, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return fmt.Errorf("its domain: %w", err)
	}
	a.Address = strings.TrimSuffix(a.Address, host) + encoded
	return nil
}

// international says that an encoded address is only for servers with the
// extension SMTPUTF8 (RFC 6531).
func international(a netmail.Address) bool { return !ascii(a.Address) }

func ascii(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }
