package v1compat

import (
	"net/http"

	"partnerapi/domain"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// PhishingStatus is how far a simulated mail got, in v1's words.
type PhishingStatus string

// The states of v1.
const (
	Sent    PhishingStatus = "Sent"
	Opened  PhishingStatus = "Opened"
	Clicked PhishingStatus = "Clicked"
)

// Values lists the states.
func (PhishingStatus) Values() []string {
	return []string{string(Sent), string(Opened), string(Clicked)}
}

// PhishingResult is a simulated mail to a user as v1 shows it.
type PhishingResult struct {
	Status     PhishingStatus `json:"status" doc:"How far the user got with the mail. Submitted credentials and opened attachments count as Clicked."`
	StatusDate Time           `json:"status_date" doc:"When that first happened."`
}

type listPhishing struct {
	Path  userPath
	Query struct{ upTo50 }
}

func (f *Facade) phishingRoutes(api *v2.API, own *v2.V1) {
	listNext(f, Meta{
		ID: "phishing", Method: "GET", Path: "/users/:user_id/phishing", Status: http.StatusOK,
		Summary: "Get User Phishing Results",
		Description: "Returns the simulated mails that were sent to a user, newest first, and how far each got. What " +
			"mail scanners did is not counted.",
		Fails: []int{http.StatusNotFound}, Reordered: true, Successor: api.ListPhishingResults,
	}, own.SentResults, fromListPhishing, toPhishingResult, nextListPhishing)
}

func fromListPhishing(in *listPhishing) (*v2.SentResults, *op.Paging) {
	out := &v2.SentResults{}
	out.Path.UserID = in.Path.UserID.ID
	return out, &out.Query.Paging
}

// nextListPhishing asks for the results of the user that were sent.
func nextListPhishing(in *v2.SentResults, _ *op.Page[v2.PhishingResult]) (any, *op.Paging) {
	out := &v2.ListPhishingResults{}
	out.Path.ClientID = in.Client
	out.Query.UserID = in.Path.UserID.String()
	out.Query.Status = &sentStatuses
	return out, &out.Query.Paging
}

// sentStatuses are the states of mails that were sent.
var sentStatuses = func() (sent v2.ResultStatuses) {
	for _, status := range domain.ResultStatus("").Values() {
		if s := domain.ResultStatus(status); s != domain.ResultScheduled && s != domain.ResultFailed {
			sent = append(sent, s)
		}
	}
	return sent
}()

// toPhishingResult names the furthest state, and when the first event was that
// made it so (decisions 5.10).
func toPhishingResult(r v2.PhishingResult) PhishingResult {
	out, reached := PhishingResult{Status: Sent}, r.SentAt
	switch r.Status {
	case domain.ResultOpened:
		out.Status, reached = Opened, r.OpenedAt
	case domain.ResultAttachmentOpened, domain.ResultClicked, domain.ResultCredentialsSubmitted:
		out.Status, reached = Clicked, earliest(r.AttachmentOpenedAt, r.ClickedAt, r.CredentialsSubmittedAt)
	}
	if reached != nil { // the list holds no mails that were not sent
		out.StatusDate = at(*reached)
	}
	return out
}

// earliest is the first of the times that are not nil.
func earliest(times ...*domain.Time) (first *domain.Time) {
	for _, t := range times {
		if t != nil && (first == nil || t.Time.Before(first.Time)) {
			first = t
		}
	}
	return first
}
