package v2

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// RenderEvents returns the bodies of events in their order, with the present state of their objects; a body is empty if
// the object no longer exists. It reads all objects of a kind together. It is an outbox.RenderEvents.
func (a *API) RenderEvents(ctx context.Context, events []db.OutboxEvent) ([]string, error) {
	bodies := make([]string, len(events))
	for _, r := range eventRenderers {
		var indexes []int
		var matching []db.OutboxEvent
		for i, e := range events {
			if slices.Contains(r.types, e.Type) {
				indexes, matching = append(indexes, i), append(matching, e)
			}
		}
		if len(matching) == 0 {
			continue
		}
		data, err := r.data(a, ctx, matching)
		if err != nil {
			return nil, err
		}
		for i, e := range matching {
			if data[i] == nil {
				continue
			}
			body, err := json.Marshal(api.EventWith[any]{ID: e.ID, Type: e.Type, CreatedAt: domain.At(e.At), ClientID: e.Client, Data: data[i]})
			if err != nil {
				return nil, err
			}
			bodies[indexes[i]] = string(body)
		}
	}
	return bodies, nil
}

// eventRenderer renders events of types. data returns a value for each event, nil if its object no longer exists
// (decisions 8.1).
type eventRenderer struct {
	types []domain.EventType
	data  func(*API, context.Context, []db.OutboxEvent) ([]any, error)
}

// eventRenderers render all types of events: each type is in one of them.
var eventRenderers = []*eventRenderer{
	newRenderer((*db.DB).EventClients, func(e db.OutboxEvent) domain.ClientID { return e.Client },
		func(_ *API, _ db.OutboxEvent, c domain.Client) api.Client { return clientOf(c) }, domain.ClientCreated),
	newRenderer((*db.DB).EventUsers, func(e db.OutboxEvent) domain.UserID { return e.User },
		func(_ *API, _ db.OutboxEvent, u domain.UserDetail) api.UserDetail { return *userDetailOf(u) },
		domain.UserCreated, domain.UserUpdated, domain.UserDeactivated),
	newRenderer((*db.DB).EventResults, func(e db.OutboxEvent) domain.ResultID { return domain.ResultID(e.Object) },
		func(_ *API, _ db.OutboxEvent, r domain.Result) api.PhishingResult { return resultOf(r) }, domain.ResultUpdated),
	newRenderer((*db.DB).EventReportedEmails,
		func(e db.OutboxEvent) domain.ReportedEmailID { return domain.ReportedEmailID(e.Object) },
		func(_ *API, _ db.OutboxEvent, r domain.ReportedEmail) api.ReportedEmail { return reportedEmailOf(r) }, domain.RealReported),
	newRenderer((*db.DB).EventAssignments, userObject,
		func(a *API, e db.OutboxEvent, t domain.Assignment) api.UserAssignment {
			return api.UserAssignment{UserID: e.User, Assignment: a.assignmentOf(t)}
		},
		domain.CoursePassed, domain.CourseOverdue),
	newRenderer((*db.DB).EventSignatures, userObject, func(_ *API, _ db.OutboxEvent, s db.EventSignature) api.PolicyAcknowledgment {
		return api.PolicyAcknowledgment{PolicyID: s.PolicyID, UserID: s.UserID, Version: s.Version, AcknowledgedAt: domain.At(s.SignedAt)}
	}, domain.PolicyAgreed),
	newRenderer((*db.DB).EventExposures, func(e db.OutboxEvent) domain.MessageID { return domain.MessageID(e.Object) },
		func(_ *API, _ db.OutboxEvent, x domain.Exposure) api.Exposure { return exposureOf(x) }, domain.DataExposed),
	newRenderer((*db.DB).EventSyncRuns, func(e db.OutboxEvent) domain.SyncRunID { return domain.SyncRunID(e.Object) },
		func(_ *API, _ db.OutboxEvent, r domain.SyncRun) api.SyncRun { return syncRunOf(r) }, domain.SyncDone, domain.SyncStopped),
	newRenderer((*db.DB).EventReports, func(e db.OutboxEvent) domain.ReportID { return domain.ReportID(e.Object) },
		func(_ *API, _ db.OutboxEvent, r domain.Report) api.Report { return reportOf(r) }, domain.ReportMade),
}

func userObject(e db.OutboxEvent) db.UserObject { return db.UserObject{User: e.User, Object: e.Object} }

// newRenderer returns the renderer of types: read returns the objects of events by their keys, key the key of an
// event's object, and show the v2 form of an object.
func newRenderer[K comparable, T, Data any](
	read func(*db.DB, context.Context, []db.OutboxEvent) (map[K]T, error),
	key func(db.OutboxEvent) K,
	show func(*API, db.OutboxEvent, T) Data,
	types ...domain.EventType,
) *eventRenderer {
	return &eventRenderer{types, func(a *API, ctx context.Context, events []db.OutboxEvent) ([]any, error) {
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

func (a *API) bindEvents() {
	op.BindFeed(&a.Set, api.ListEvents, a.listEvents, api.EventOf)
}

func (a *API) listEvents(
	ctx context.Context, in *api.ListEventsInput, w domain.Window,
) (domain.Slice[domain.PublishedEvent], error) {
	filter := domain.EventFilter{Types: in.Query.Types, Client: filterID[domain.ClientKind](in.Query.ClientID)}
	return outbox.Events(ctx, a.db, filter, w)
}
