package domain

import (
	"fmt"
	"net/url"
	"time"
)

// Notice is the content of an email to the owners and admins of a partner, in English. In its texts, PublicURL is
// replaced by the URL of the service. Empty parts are omitted.
type Notice struct {
	Subject    string   `json:"subject"`
	Paragraphs []string `json:"paragraphs"`
	// Facts are shown first.
	Facts         []NoticeFact `json:"facts,omitempty"`
	PointsHeading string       `json:"points_heading,omitempty"`
	Points        []string     `json:"points,omitempty"`
	// Tables stand for Points in HTML; the plain text has Points.
	Tables []NoticeTable `json:"tables,omitempty"`
	After  []string      `json:"after,omitempty"` // paragraphs
	// Action is the text of the link to Path, which begins with a slash.
	Action string `json:"action"`
	Path   string `json:"path"`
}

// NoticeFact is a short fact with its label, such as a date.
type NoticeFact struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// NoticeTable is a table of a Notice.
type NoticeTable struct {
	Heading string         `json:"heading"`
	Columns []string       `json:"columns"`
	Rows    [][]NoticeCell `json:"rows"`
	Note    string         `json:"note,omitempty"` // below the table
}

// NoticeCell is a cell of a table. Path, if not empty, is the path of the page that it links to.
type NoticeCell struct {
	Text string `json:"text"`
	Path string `json:"path,omitempty"`
}

// PublicURL is the placeholder of the public URL of the service, without a slash at its end.
const PublicURL = "{public-url}"

// PartnerMail is an email to the owners and admins of a partner. Each address gets only one email with the same kind
// and cause.
type PartnerMail struct {
	Partner PartnerID
	Kind    MessageType
	Cause   string
	Notice  Notice
}

// The types of emails about webhooks (decisions 8.4). They are not in MessageType.Values, because they are not sent to
// users, and no operation lists them.
const (
	WebhookFailingMail  MessageType = "webhook-failing"
	WebhookDisabledMail MessageType = "webhook-disabled"
)

// PartnerMails are the types of email to partners. Each can be switched off for a partner.
var PartnerMails = []MessageType{WebhookFailingMail, WebhookDisabledMail}

// WebhookFailure is the data of an email about a subscription whose deliveries fail.
type WebhookFailure struct {
	ID    WebhookID
	URL   string
	Since time.Time
	// Disabled is true if the subscription was disabled. Gone is true if its endpoint responded with 410.
	Disabled, Gone bool
}

// Mail returns the type and the content of the email.
func (f *WebhookFailure) Mail() (MessageType, Notice) {
	n := Notice{Action: "Read about retries", Path: "/docs/guide/webhooks"}
	target, since := fmt.Sprintf("webhook %s (%s)", f.ID, origin(f.URL)), f.Since.UTC().Format("2 January 2006, 15:04 UTC")
	attempts := fmt.Sprintf("GET /v2/webhooks/%s/deliveries lists each attempt and the endpoint's response.", f.ID)
	if !f.Disabled {
		n.Subject = "Deliveries to your webhook are failing"
		n.Paragraphs = []string{
			fmt.Sprintf("All deliveries to the %s have failed since %s.", target, since),
			"The service retries each delivery for 24 hours. If all deliveries fail for 24 hours, it disables the webhook.",
			attempts,
		}
		return WebhookFailingMail, n
	}
	reason := fmt.Sprintf("All deliveries have failed since %s.", since)
	if f.Gone {
		reason = "Its endpoint returned 410 Gone."
	}
	n.Subject = "Your webhook is disabled"
	n.Paragraphs = []string{
		fmt.Sprintf("The %s is disabled and no longer receives events. %s", target, reason),
		attempts + " GET /v2/events returns the events from the last 30 days, including undelivered events.",
		fmt.Sprintf(`To reactivate the webhook, send PATCH /v2/webhooks/%s with {"status": "active"}. It then receives events from that moment on.`, f.ID),
	}
	return WebhookDisabledMail, n
}

// WebhookKeyEnd is the data of an email about a subscription that is disabled because its key ended.
type WebhookKeyEnd struct {
	ID  WebhookID
	URL string
	// Reason is DisabledKeyRevoked or DisabledKeyExpired, At the time of the end, and Prefix that of the key.
	Reason DisabledReason
	At     time.Time
	Prefix string
}

// Mail returns the content of the email, whose type is WebhookDisabledMail.
func (e *WebhookKeyEnd) Mail() Notice {
	ended := "was revoked"
	if e.Reason == DisabledKeyExpired {
		ended = "expired"
	}
	return Notice{
		Subject: "Your webhook is disabled", Action: "Read what to do", Path: "/docs/guide/webhooks",
		Paragraphs: []string{
			fmt.Sprintf("The webhook %s (%s) is disabled and no longer receives events. Its API key %s %s on %s.", e.ID, origin(e.URL),
				e.Prefix, ended, e.At.UTC().Format("2 January 2006, 15:04 UTC")),
			fmt.Sprintf(`To reactivate the webhook, use another API key with access to at least the same clients. Send PATCH /v2/webhooks/%s with {"status": "active"}. `+
				"The webhook then uses that key and still covers the same clients. It receives events from that moment on.", e.ID),
			"GET /v2/events returns the events from the last 30 days, including undelivered events.",
		},
	}
}

// origin returns the scheme and the host of a URL. Its path and query may contain secrets. It returns "" for an invalid
// URL.
func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
