package report

import (
	"encoding/binary"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/seal"
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
	// purpose is what the tokens are signed for.
	purpose = "report"
	// signedLength is how many bytes are signed: two ids, and a time in Unix seconds.
	signedLength = 16 + 16 + 8
)

func (l Links) token(client domain.ClientID, report domain.ReportID, until time.Time) string {
	signed := append(client[:], report[:]...)
	return seal.Sign(l.secret, purpose, binary.BigEndian.AppendUint64(signed, uint64(until.Unix())))
}

// read returns what a token names; false where it was altered or has expired.
func (l Links) read(token string) (client domain.ClientID, report domain.ReportID, ok bool) {
	signed, ok := seal.Signed(l.secret, purpose, token, signedLength)
	if !ok {
		return client, report, false
	}
	copy(client[:], signed[:16])
	copy(report[:], signed[16:32])
	return client, report, l.now().Before(time.Unix(int64(binary.BigEndian.Uint64(signed[32:])), 0))
}
