package transfer

import (
	"context"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"partnerapi/db"
	"partnerapi/domain"
)

// signalLine is a signal as package ingest reads it.
type signalLine struct {
	ID       string            `json:"id"`
	Type     domain.SignalType `json:"type"`
	At       domain.Moment     `json:"at"`
	UserID   domain.UserID     `json:"user_id,omitzero"`
	CourseID domain.CourseID   `json:"course_id,omitzero"`
	PolicyID domain.PolicyID   `json:"policy_id,omitzero"`
	Version  int               `json:"version,omitzero"`
	// The subject and the sender of a mail may be empty; nil leaves them out.
	MessageID      string               `json:"message_id,omitzero"`
	Subject        *string              `json:"subject,omitzero"`
	Sender         *string              `json:"sender,omitzero"`
	Classification domain.EmailClass    `json:"classification,omitzero"`
	MailboxAction  domain.MailboxAction `json:"mailbox_action,omitzero"`
	ClientID       domain.ClientID      `json:"client_id,omitzero"`
}

// listSignals writes signals as lines.
func listSignals(ctx context.Context, d *db.DB, of domain.PartnerID, w io.Writer, told Told) error {
	n := 0
	for s, err := range d.ExportSignals(ctx, of) {
		if err != nil {
			return fmt.Errorf("export signals: %w", err)
		}
		line := signalLine{
			ID: s.ID, Type: s.Type, At: domain.MomentOf(s.At), UserID: s.User, CourseID: s.Course, PolicyID: s.Policy,
			Version: s.Version, MessageID: s.Message, Classification: s.Classification.Class,
			MailboxAction: s.Classification.Action, ClientID: s.Client,
		}
		if s.Type == domain.EmailReported {
			line.Subject, line.Sender = &s.Subject, &s.Sender
		}
		text, err := json.Marshal(line)
		if err == nil {
			_, err = w.Write(append(text, '\n'))
		}
		if err != nil {
			return fmt.Errorf("export signals: %w", err)
		}
		if n++; n%toldEvery == 0 {
			told("signal", n, false)
		}
	}
	told("signal", n, true)
	return nil
}
