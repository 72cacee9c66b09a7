package report

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"partnerapi/domain"
)

// Links makes and reads the addresses of reports' files. The last part of one is a
// token: the ids of the client and the report, when the link expires, and 128 bits
// of the HMAC of these. Nothing of it is stored.
type Links struct {
	secret []byte
	// base is the address of the service that the links begin with.
	base string
	now  func() time.Time
}

// NewLinks takes the database's secret for links (db.ReportSecret), the address that
// callers reach the service at, and the database's clock.
func NewLinks(secret []byte, base string, now func() time.Time) Links {
	return Links{secret: secret, base: strings.TrimRight(base, "/"), now: now}
}

// To is the link to a report's file, valid from now on for domain.ReportLinkLife.
func (l Links) To(r domain.Report) string {
	return l.base + "/reports/" + l.token(r.Client, r.ID, l.now().Add(domain.ReportLinkLife))
}

const (
	signedLength = 16 + 16 + 8
	macLength    = 16
)

func (l Links) token(client domain.ClientID, report domain.ReportID, until time.Time) string {
	raw := append(append(make([]byte, 0, signedLength+macLength), client[:]...), report[:]...)
	raw = binary.BigEndian.AppendUint64(raw, uint64(until.Unix()))
	return base64.RawURLEncoding.EncodeToString(append(raw, l.mac(raw)...))
}

// read returns what a token names; false where it was altered or has expired.
func (l Links) read(token string) (client domain.ClientID, report domain.ReportID, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != signedLength+macLength || strings.ContainsAny(token, "\r\n") {
		return client, report, false
	}
	signed := raw[:signedLength]
	if !hmac.Equal(raw[signedLength:], l.mac(signed)) {
		return client, report, false
	}
	until := time.Unix(int64(binary.BigEndian.Uint64(signed[32:])), 0)
	copy(client[:], signed[:16])
	copy(report[:], signed[16:32])
	return client, report, l.now().Before(until)
}

func (l Links) mac(signed []byte) []byte {
	h := hmac.New(sha256.New, l.secret)
	h.Write([]byte("report "))
	h.Write(signed)
	return h.Sum(nil)[:macLength]
}
