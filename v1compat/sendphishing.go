package v1compat

import (
	"net/http"
	"time"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
)

// Message is the answer to a send: a text for people.
type Message struct {
	Message string `json:"message" doc:"What will happen, for people."`
}

type sendPhishing struct {
	Body struct {
		UserID           *UUID[domain.UserKind]         `json:"user_id" validate:"required" doc:"UUID of an active user."`
		PhishingTemplate idmap.Ref[domain.TemplateKind] `json:"phishing_template" validate:"required" doc:"Number of the template."`
		SendTime         *domain.Time                   `json:"send_time,omitzero" doc:"When to send. Left out, null or past, at once."`
	}
}

func (f *Facade) sendPhishingRoutes(api *v2.API, own *v2.V1) {
	callNext(f, Meta{
		ID: "sendphishing", Method: "POST", Path: "/sendphishing", Status: http.StatusOK, Summary: "Send Phishing",
		Description: "Schedules a simulated mail to one user, whichever client the user belongs to.",
		Fails:       []int{http.StatusNotFound, http.StatusRequestEntityTooLarge},
		Fields:      map[string]string{"user_ids": "user_id", "template_id": "phishing_template", "send_at": "send_time"},
		Successor:   api.SendPhishing,
	}, own.SendToUser, fromSendPhishing, toMessage, nextSendPhishing)
}

// fromSendPhishing names the one user. A number that is no template's is the
// zero id, which v2 knows for no template.
func fromSendPhishing(in *sendPhishing) *v2.SendToUser {
	out := &v2.SendToUser{}
	if in.Body.UserID != nil {
		out.Body.UserIDs = []domain.UserID{in.Body.UserID.ID}
	}
	if in.Body.PhishingTemplate != (idmap.Ref[domain.TemplateKind]{}) {
		out.Body.TemplateID = &in.Body.PhishingTemplate.ID
	}
	if t := in.Body.SendTime; t != nil {
		out.Body.SendAt = domain.Give(*t)
	}
	return out
}

func nextSendPhishing(in *v2.SendToUser) any {
	out := &v2.SendPhishing{}
	out.Path.ClientID = in.Client
	return out
}

func toMessage(out *v2.SentToUser) *Message {
	when := out.SendAt.Time.UTC().Format(time.RFC3339)
	return &Message{Message: "The phishing simulation is scheduled for " + when + "."}
}
