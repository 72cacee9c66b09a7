package mail

import (
	"errors"
	"fmt"
	"net/textproto"
	"regexp"
	"strings"
)

// part is what of a message was being sent to a mail server.
type part string

const (
	partSender  part = "the sender"
	partAddress part = "the address"
	partContent part = "the message"
)

// closing is the status by which a server ends a connection.
const closing = 421

// failure is why a message was not handed over: an answer of the server
// (*textproto.Error), or the end of the connection.
type failure struct {
	at  part
	err error
}

// Error shows what the server said, which may name the reader's address.
func (f *failure) Error() string {
	code, text := f.answer()
	if code == 0 {
		return fmt.Sprintf("the connection to the mail server failed at %s: %v", f.at, f.err)
	}
	return fmt.Sprintf("the mail server refuses %s: %d %s", f.at, code, strings.Join(strings.Fields(text), " "))
}

// answer is what the server said; the code is 0 where it said nothing.
func (f *failure) answer() (code int, text string) {
	var answer *textproto.Error
	if errors.As(f.err, &answer) {
		return answer.Code, answer.Msg
	}
	return 0, ""
}

// final says that the connection ended, or that the server is ending it.
func (f *failure) final() bool {
	code, _ := f.answer()
	return code == 0 || code == closing
}

// enhancedStatus is the subject and detail of a status of RFC 3463, which
// begins the text of an answer.
var enhancedStatus = regexp.MustCompile(`^[245]\.(\d{1,3})\.(\d{1,3})\b`)

// permanent says that another try is of no use. What servers refuse because of
// this service (who sends, from where, without which password) may be accepted once
// that is corrected; many refuse it only when they get the address.
func (f *failure) permanent() bool {
	code, text := f.answer()
	var subject, detail string
	if found := enhancedStatus.FindStringSubmatch(text); found != nil {
		subject, detail = found[1], found[2]
	}
	switch {
	case code < 500 || code > 599 || f.at == partSender:
		return false
	case code == 530 || code == 534 || code == 535 || code == 538: // authentication or encryption is wanted
		return false
	case f.at == partAddress && subject == "7": // a rule, such as that this service may not send through the server
		return false
	case f.at == partAddress && subject == "1" && (detail == "7" || detail == "8"): // the sender's address after all
		return false
	}
	return true
}

// sorted distinguishes a permanent refusal from a temporary one. The
// latter is for the log, and does not name the reader.
func (f *failure) sorted(w wire) error {
	if f.permanent() {
		return &RefusedError{Reason: f.Error()}
	}
	named := regexp.MustCompile("(?i)" + strings.Join([]string{
		regexp.QuoteMeta(w.asked), regexp.QuoteMeta(w.to.Address), regexp.QuoteMeta(strings.Trim(w.to.String(), "<>")),
	}, "|"))
	return errors.New(named.ReplaceAllLiteralString(f.Error(), "…"))
}
