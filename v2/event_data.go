package v2

import (
	"context"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"

	"partnerapi/db"
	"partnerapi/domain"
)

// UserAssignment is where a user stands with a course, as events show it.
type UserAssignment struct {
	UserID domain.UserID `json:"user_id" doc:"Opaque id of the user."`
	Assignment
}

// PolicyAcknowledgment is a user's sign-off of a policy, as events show it.
type PolicyAcknowledgment struct {
	PolicyID       domain.PolicyID `json:"policy_id" doc:"Opaque id of the policy."`
	UserID         domain.UserID   `json:"user_id" doc:"Opaque id of the user."`
	Version        int             `json:"version" doc:"The version that the user signed."`
	AcknowledgedAt domain.Time     `json:"acknowledged_at" doc:"When the user signed."`
}

// RenderEvents returns the bodies of events, with what they are about as it is now,
// each at its event's place: empty where that is gone. Objects of a kind are read
// together. It is an outbox.RenderEvents.
func (a *API) RenderEvents(ctx context.Context, events []db.OutboxEvent) ([]string, error) {
	bodies := make([]string, len(events))
	for _, r := range eventRenderers {
		var places []int
		var own []db.OutboxEvent
		for i, e := range events {
			if r.renders(e.Type) {
				places, own = append(places, i), append(own, e)
			}
		}
		if len(own) == 0 {
			continue
		}
		data, err := r.data(a, ctx, own)
		if err != nil {
			return nil, err
		}
		for i, e := range own {
			if data[i] == nil {
				continue
			}
			body, err := json.Marshal(event[any]{e.ID, e.Type, domain.At(e.At), e.Client, data[i]})
			if err != nil {
				return nil, err
			}
			bodies[places[i]] = string(body)
		}
	}
	return bodies, nil
}

// eventRenderer makes the data of events of some types, each at its event's place: nil
// where the object is gone (decisions 8.1).
type eventRenderer struct {
	types []domain.EventType
	// form is the event with such data.
	form reflect.Type
	data func(*API, context.Context, []db.OutboxEvent) ([]any, error)
}

func (r *eventRenderer) renders(t domain.EventType) bool { return slices.Contains(r.types, t) }

var eventRenderers = []*eventRenderer{
	rendererOf((*db.DB).EventClients, func(e db.OutboxEvent) domain.ClientID { return e.Client },
		func(_ *API, _ db.OutboxEvent, c domain.Client) Client { return clientOf(c) }, domain.ClientCreated),
	rendererOf((*db.DB).EventUsers, func(e db.OutboxEvent) domain.UserID { return e.User },
		func(_ *API, _ db.OutboxEvent, u domain.UserDetail) UserDetail { return *userDetailOf(u) },
		domain.UserCreated, domain.UserUpdated, domain.UserDeactivated),
	rendererOf((*db.DB).EventResults, func(e db.OutboxEvent) domain.ResultID { return domain.ResultID(e.Object) },
		func(_ *API, _ db.OutboxEvent, r domain.Result) PhishingResult { return resultOf(r) }, domain.ResultUpdated),
	rendererOf((*db.DB).EventReportedEmails,
		func(e db.OutboxEvent) domain.ReportedEmailID { return domain.ReportedEmailID(e.Object) },
		func(_ *API, _ db.OutboxEvent, r domain.ReportedEmail) ReportedEmail { return reportedEmailOf(r) }, domain.RealReported),
	rendererOf((*db.DB).EventAssignments, userObject,
		func(a *API, e db.OutboxEvent, t domain.Assignment) UserAssignment {
			return UserAssignment{e.User, a.assignmentOf(t)}
		},
		domain.CoursePassed, domain.CourseOverdue),
	rendererOf((*db.DB).EventSignatures, userObject, func(_ *API, _ db.OutboxEvent, s db.EventSignature) PolicyAcknowledgment {
		return PolicyAcknowledgment{PolicyID: s.PolicyID, UserID: s.UserID, Version: s.Version, AcknowledgedAt: domain.At(s.SignedAt)}
	}, domain.PolicyAgreed),
	rendererOf((*db.DB).EventExposures, func(e db.OutboxEvent) domain.MessageID { return domain.MessageID(e.Object) },
		func(_ *API, _ db.OutboxEvent, x domain.Exposure) Exposure { return exposureOf(x) }, domain.DataExposed),
	rendererOf((*db.DB).EventSyncRuns, func(e db.OutboxEvent) domain.SyncRunID { return domain.SyncRunID(e.Object) },
		func(_ *API, _ db.OutboxEvent, r domain.SyncRun) SyncRun { return syncRunOf(r) }, domain.SyncDone, domain.SyncStopped),
	rendererOf((*db.DB).EventReports, func(e db.OutboxEvent) domain.ReportID { return domain.ReportID(e.Object) },
		func(_ *API, _ db.OutboxEvent, r domain.Report) Report { return reportOf(r) }, domain.ReportMade),
}

func userObject(e db.OutboxEvent) db.UserObject { return db.UserObject{User: e.User, Object: e.Object} }

// rendererOf is the renderer of types whose objects read reads, by keys that key says,
// and show shows.
func rendererOf[K comparable, T, Data any](
	read func(*db.DB, context.Context, []db.OutboxEvent) (map[K]T, error),
	key func(db.OutboxEvent) K,
	show func(*API, db.OutboxEvent, T) Data,
	types ...domain.EventType,
) *eventRenderer {
	return &eventRenderer{types, reflect.TypeFor[event[Data]](), func(a *API, ctx context.Context, events []db.OutboxEvent) ([]any, error) {
		objects, err := read(a.db, ctx, events)
		data := make([]any, len(events))
		for i, e := range events {
			if object, found := objects[key(e)]; found {
				data[i] = show(a, e, object)
			}
		}
		return data, err
	}}
}
