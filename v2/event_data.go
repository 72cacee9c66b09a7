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

// RenderEvents returns the bodies of events in their order, with the present state of their objects in the release that
// is served. The body of an event is empty if its object no longer exists or the release lacks its type. All objects of
// a kind are read together. The publisher calls it (outbox.RenderEvents).
func (a *API) RenderEvents(ctx context.Context, events []db.OutboxEvent) ([]string, error) {
	release, err := a.servedRelease(ctx)
	if err != nil {
		return nil, err
	}
	bodies := make([]string, len(events))
	for _, r := range a.eventRenderers(release) {
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
		data, err := r.data(ctx, matching)
		if err != nil {
			return nil, err
		}
		for i, e := range matching {
			if data[i] == nil {
				continue
			}
			body, err := json.Marshal(release.View(api.EventWith[any]{
				ID: e.ID, Type: e.Type, CreatedAt: domain.At(e.At), ClientID: e.Client, Data: data[i],
			}))
			if err != nil {
				return nil, err
			}
			bodies[indexes[i]] = string(body)
		}
	}
	return bodies, nil
}

// servedRelease returns the release that a process on the database serves, as it was recorded last, otherwise that of
// the API. For one that this program does not know, which a later version serves, it returns the latest that it knows.
func (a *API) servedRelease(ctx context.Context) (op.Release, error) {
	recorded, err := a.db.ServedRelease(ctx)
	if err != nil || recorded == "" {
		return a.release, err
	}
	release, err := op.ParseRelease(recorded)
	if err != nil {
		return op.Latest, nil
	}
	return release, nil
}

// SignsBodies reports whether messages to webhooks have domain.BodySignatureHeader: from release 2.5 (decisions 4.2).
func (a *API) SignsBodies(ctx context.Context) (bool, error) {
	release, err := a.servedRelease(ctx)
	return release >= op.BodySignatureSince, err
}

// eventRenderer renders events of types. data returns a value for each event, nil if its object no longer exists
// (decisions 8.1).
type eventRenderer struct {
	types []domain.EventType
	data  func(context.Context, []db.OutboxEvent) ([]any, error)
}

// eventRenderers returns a renderer for each type of data of the events in a release.
func (a *API) eventRenderers(release op.Release) []eventRenderer {
	return []eventRenderer{
		newRenderer(release, a.db.EventClients, func(e db.OutboxEvent) domain.ClientID { return e.Client }, clientOf),
		newRenderer(release, a.db.EventUsers, func(e db.OutboxEvent) domain.UserID { return e.User },
			func(u domain.UserDetail) api.UserDetail { return *userDetailOf(u) }),
		newRenderer(release, a.db.EventResults, objectID[domain.ResultKind], resultOf),
		newRenderer(release, a.db.EventReportedEmails, objectID[domain.ReportedEmailKind], reportedEmailOf),
		newRenderer(release, a.db.EventAssignments, userObject, a.userAssignmentOf),
		newRenderer(release, a.db.EventSignatures, userObject, acknowledgmentOf),
		newRenderer(release, a.db.EventExposures, objectID[domain.ExposureKind], exposureOf),
		newRenderer(release, a.db.EventSyncRuns, objectID[domain.SyncRunKind], syncRunOf),
		newRenderer(release, a.db.EventReports, objectID[domain.ReportKind], reportOf),
	}
}

func objectID[K domain.Kind](e db.OutboxEvent) domain.ID[K] { return domain.ID[K](e.Object) }

func userObject(e db.OutboxEvent) db.UserObject { return db.UserObject{User: e.User, Object: e.Object} }

func (a *API) userAssignmentOf(t domain.ClientAssignment) api.UserAssignment {
	return api.UserAssignment{UserID: t.User, Assignment: a.assignmentOf(t.Assignment)}
}

func acknowledgmentOf(s db.EventSignature) api.PolicyAcknowledgment {
	return api.PolicyAcknowledgment{PolicyID: s.PolicyID, UserID: s.UserID, Version: s.Version, AcknowledgedAt: domain.At(s.SignedAt)}
}

// newRenderer returns a renderer of the events of a release whose data is a Data. read returns the objects that still
// exist by their keys; the data of other events is nil. key returns the key of an event's object. show converts an
// object to its v2 form.
func newRenderer[K comparable, T, Data any](
	release op.Release,
	read func(context.Context, []db.OutboxEvent) (map[K]T, error),
	key func(db.OutboxEvent) K,
	show func(T) Data,
) eventRenderer {
	return eventRenderer{api.EventsWith[Data](release), func(ctx context.Context, events []db.OutboxEvent) ([]any, error) {
		objects, err := read(ctx, events)
		data := make([]any, len(events))
		for i, e := range events {
			if object, found := objects[key(e)]; found {
				data[i] = show(object)
			}
		}
		return data, err
	}}
}

func (a *API) listEvents(
	ctx context.Context, in *api.ListEventsInput, w domain.Window,
) (domain.Slice[domain.PublishedEvent], error) {
	filter := domain.EventFilter{
		Types: in.Query.Types, Client: filterID[domain.ClientKind](in.Query.ClientID), Since: toTime(in.Query.Since), Ends: in.Query.Follow.Ends,
	}
	return outbox.Events(ctx, a.db, filter, w)
}
