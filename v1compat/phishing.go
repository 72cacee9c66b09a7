package v1compat

import (
	"net/http"
	"time"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// PhishingStatus is the furthest state of a simulated email, in v1's terms.
type PhishingStatus string

// The states of v1.
const (
	Sent    PhishingStatus = "Sent"
	Opened  PhishingStatus = "Opened"
	Clicked PhishingStatus = "Clicked"
)

// Values lists the statuses for the OpenAPI document.
func (PhishingStatus) Values() []string {
	return []string{string(Sent), string(Opened), string(Clicked)}
}

// PhishingResult is v1's form of a simulated email to a user.
type PhishingResult struct {
	Status     PhishingStatus `json:"status" doc:"Status of the email. Submitted credentials and opened attachments count as Clicked."`
	StatusDate Time           `json:"status_date" doc:"When the email first had this status."`
}

type listPhishing struct {
	Path  userPath
	Query struct{ upTo50 }
}

// addPhishingRoutes adds the route of phishing results.
func (f *Facade) addPhishingRoutes() {
	addList[listPhishing](f, Meta{
		ID: "phishing", Method: "GET", Path: "/users/:user_id/phishing", Status: http.StatusOK,
		Summary: "Get User Phishing Results",
		Description: "Returns the simulated emails sent to the user, newest first, each with its status. Email scanner activity is not " +
			"counted.",
		Fails: []int{http.StatusNotFound}, Reordered: true, Successor: api.ListPhishingResults,
	}, api.SentResults, nil, toPhishingResult, nextListPhishing)
}

// nextListPhishing returns the input that lists the user's sent results.
func nextListPhishing(in *api.SentResultsInput, _ *op.Page[api.PhishingResult]) any {
	out := &api.ListPhishingResultsInput{}
	out.Path.ClientID = in.Client
	out.Query.UserID = in.Path.UserID.String()
	out.Query.Status = &sentStatuses
	return out
}

// sentStatuses are the states of emails that were sent.
var sentStatuses = func() (sent api.ResultStatuses) {
	for _, status := range domain.ResultStatus("").Values() {
		if s := domain.ResultStatus(status); s != domain.ResultScheduled && s != domain.ResultFailed {
			sent = append(sent, s)
		}
	}
	return sent
}()

// toPhishingResult returns the furthest state and the time of the first event of that state (decisions 5.10).
func toPhishingResult(r api.PhishingResult) PhishingResult {
	out, reached := PhishingResult{Status: Sent}, r.SentAt
	switch r.Status {
	case domain.ResultOpened:
		out.Status, reached = Opened, r.OpenedAt
	case domain.ResultAttachmentOpened, domain.ResultClicked, domain.ResultCredentialsSubmitted:
		out.Status, reached = Clicked, earliest(r.AttachmentOpenedAt, r.ClickedAt, r.CredentialsSubmittedAt)
	}
	if reached != nil { // nil only in a faulty answer that parity reads
		out.StatusDate = at(*reached)
	}
	return out
}

// earliest returns the first of the times that are not nil.
func earliest(times ...*domain.Time) (first *domain.Time) {
	for _, t := range times {
		if t != nil && (first == nil || t.Time.Before(first.Time)) {
			first = t
		}
	}
	return first
}

// Message is the response to a send: a text for people.
type Message struct {
	Message string `json:"message" doc:"Human-readable description of what will happen."`
}

type sendPhishing struct {
	Body struct {
		UserID           *UUID[domain.UserKind]         `json:"user_id" validate:"required" doc:"UUID of an active user."`
		PhishingTemplate idmap.Ref[domain.TemplateKind] `json:"phishing_template" validate:"required" doc:"Numeric ID of the template."`
		SendTime         *domain.Time                   `json:"send_time,omitzero" doc:"When to send the email. If omitted, null or in the past, the email is sent immediately."`
	}
}

// addSendPhishingRoutes adds the route that sends a simulated email.
func (f *Facade) addSendPhishingRoutes() {
	addCall(f, Meta{
		ID: "sendphishing", Method: "POST", Path: "/sendphishing", Status: http.StatusOK, Summary: "Send Phishing",
		Description: "Schedules a simulated email to one user of any client that the API key can access.",
		Fails:       []int{http.StatusNotFound, http.StatusRequestEntityTooLarge},
		Fields:      map[string]string{"user_ids": "user_id", "template_id": "phishing_template", "send_at": "send_time"},
		Successor:   api.SendPhishing,
	}, api.SendToUser, fillSendPhishing, toMessage, nextSendPhishing)
}

// fillSendPhishing sets the one user, the template and the time. An unknown template's number becomes the zero id,
// which no template has. An absent user or template stays nil, which v2 refuses.
func fillSendPhishing(in *sendPhishing, out *api.SendToUserInput) {
	if in.Body.UserID != nil {
		out.Body.UserIDs = []domain.UserID{in.Body.UserID.ID}
	}
	if in.Body.PhishingTemplate != (idmap.Ref[domain.TemplateKind]{}) {
		out.Body.TemplateID = &in.Body.PhishingTemplate.ID
	}
	if t := in.Body.SendTime; t != nil {
		out.Body.SendAt = domain.Give(*t)
	}
}

func nextSendPhishing(in *api.SendToUserInput, _ *api.SentToUser) any {
	out := &api.SendPhishingInput{}
	out.Path.ClientID = in.Client
	return out
}

func toMessage(out *api.SentToUser) *Message {
	when := out.SendAt.Time.UTC().Format(time.RFC3339)
	return &Message{Message: "The phishing simulation is scheduled for " + when + "."}
}
