package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"partnerapi/domain"
)

// signatureAge is the maximum difference of a signature's time from now, which limits replays.
const signatureAge = 5 * time.Minute

// Verify returns an error unless a delivery is signed with the secret, and its time is within signatureAge of now. The
// secret is in the text form in which the service shows it. While a secret is being replaced, a delivery has a
// signature for the old one and one for the new one; one valid signature is enough. body is the raw body.
func Verify(secret string, h http.Header, body []byte, now time.Time) error {
	at, signatures := "", []string{}
	for member := range strings.SplitSeq(h.Get(domain.SignatureHeader), ",") {
		switch name, value, _ := strings.Cut(member, "="); name {
		case "t":
			at = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	unix, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return errors.New("the delivery has no " + domain.SignatureHeader + " with a time")
	}
	if now.Sub(time.Unix(unix, 0)).Abs() > signatureAge {
		return errors.New("the delivery was signed more than " + signatureAge.String() + " from now")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(at + ".")) // never fails
	_, _ = mac.Write(body)
	want := hex.EncodeToString(mac.Sum(nil))
	for _, signature := range signatures {
		if hmac.Equal([]byte(signature), []byte(want)) {
			return nil
		}
	}
	return errors.New("the delivery is not signed with this secret")
}
