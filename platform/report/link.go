package report

import (
	"encoding/binary"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/seal"
)

// Links makes and reads the URLs of reports' files. The last part of a URL is a token: the ids of the client and the
// report, the time at which the link expires, and 128 bits of the HMAC of these. Tokens are not stored.
type Links struct {
	secret []byte
	// base is the URL of the service, with which links begin.
	base string
	now  func() time.Time
}

// NewLinks returns Links from the database's secret for links (db.ReportSecret), the URL of the service, and the
// database's clock.
func NewLinks(secret []byte, base string, now func() time.Time) Links {
	return Links{secret: secret, base: strings.TrimRight(base, "/"), now: now}
}

// To returns a link to a report's file, which is valid for domain.ReportLinkLife from now.
func (l Links) To(r domain.Report) string {
	signed := append(r.Client[:], r.ID[:]...)
	signed = binary.BigEndian.AppendUint64(signed, uint64(l.now().Add(domain.ReportLinkLife).Unix()))
	return l.base + "/reports/" + seal.Sign(l.secret, purpose, signed)
}

const (
	// purpose distinguishes these tokens from others of the same secret.
	purpose = "report"
	// signedLength is the number of signed bytes: two ids, and a time in Unix seconds.
	signedLength = 16 + 16 + 8
)

// verify returns the client and the report of a token. ok is false if the token was altered or has expired.
func (l Links) verify(token string) (client domain.ClientID, report domain.ReportID, ok bool) {
	signed, ok := seal.Verify(l.secret, purpose, token, signedLength)
	if !ok {
		return client, report, false
	}
	copy(client[:], signed[:16])
	copy(report[:], signed[16:32])
	return client, report, l.now().Before(time.Unix(int64(binary.BigEndian.Uint64(signed[32:])), 0))
}
