package v1compat

import (
	"net/http"

	"partnerapi/domain"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// PhishingStatus is how far a simulated mail got, as v1 tells it.
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
	Status     PhishingStatus `json:"status"`
	StatusDate Time           `json:"status_date"`
}

type listPhishing struct {
	Path  userPath
	Query struct{ upTo50 }
}

func (f *Facade) phishingRoutes(api *v2.API) {
	list(f, Meta{
		ID: "phishing", Method: "GET", Path: "/users/:user_id/phishing", Status: http.StatusOK,
		Summary: "Get User Phishing Results",
		Fails:   []int{http.StatusNotFound},
	}, api.ListPhishingResults, fromListPhishing, toPhishingResult)
}

func fromListPhishing(in *listPhishing) (*v2.ListPhishingResults, *op.Paging) {
	out := &v2.ListPhishingResults{Sent: &in.Path.UserID.ID}
	return out, &out.Query.Paging
}

// toPhishingResult names the furthest state and when it was reached (decisions
// 5.10). v1 has no word for a mail scanner: what one did shows as it does in
// v2's status.
func toPhishingResult(r v2.PhishingResult) PhishingResult {
	out, reached := PhishingResult{Status: Sent}, []*op.Time{r.SentAt}
	switch r.Status {
	case domain.ResultOpened:
		out.Status, reached = Opened, []*op.Time{r.OpenedAt, r.SentAt}
	case domain.ResultAttachmentOpened:
		out.Status, reached = Clicked, []*op.Time{r.AttachmentOpenedAt, r.SentAt}
	case domain.ResultClicked:
		out.Status, reached = Clicked, []*op.Time{r.ClickedAt, r.AttachmentOpenedAt, r.SentAt}
	case domain.ResultCredentialsSubmitted:
		out.Status, reached = Clicked, []*op.Time{r.CredentialsSubmittedAt, r.SentAt}
	}
	for _, when := range reached {
		if when != nil {
			out.StatusDate = at(*when)
			break
		}
	}
	return out
}
