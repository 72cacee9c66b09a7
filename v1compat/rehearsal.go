package v1compat

import (
	"context"
	"net/http"
	"slices"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v2/op"
)

// startRehearsal is the input of POST /v1/rehearsal.
type startRehearsal struct {
	Body struct {
		Minutes *int `json:"minutes" validate:"required,between=1 60" doc:"Duration of the rehearsal in minutes, from 1 to 60." example:"10"`
	}
}

type endRehearsal struct{}

// StartedRehearsal is the response to the start of a rehearsal.
type StartedRehearsal struct {
	Until Time `json:"until" doc:"When the rehearsal ends. Until then, version 1 requests with this API key return 410."`
}

// The IDs of the routes of rehearsals. They are neither calls of v1 nor the key's last use (decisions 11.9).
const (
	startRehearsalID = "start-rehearsal"
	endRehearsalID   = "end-rehearsal"
)

// addRehearsalRoutes adds the routes by which callers test with their own key whether they still need v1.
func (f *Facade) addRehearsalRoutes() {
	addOwn(f, Meta{
		ID: startRehearsalID, Method: "POST", Path: "/rehearsal", Status: http.StatusOK, Summary: "Start Rehearsal",
		Description: "Switches off version 1 for the calling API key for 1 to 60 minutes, at most once in 24 hours; version 2 and other keys " +
			"are not affected. Within 30 seconds, version 1 operations start to return 410 with the code `gone`, as they will after " +
			"version 1 ends.",
		Fails: []int{http.StatusRequestEntityTooLarge},
	}, f.startRehearsal)
	addOwn(f, Meta{
		ID: endRehearsalID, Method: "DELETE", Path: "/rehearsal", Status: http.StatusNoContent, Summary: "End Rehearsal",
		Description: "Immediately ends the calling API key's rehearsal. If no rehearsal is in progress, nothing changes.",
	}, f.endRehearsal)
}

// startRehearsal implements POST /v1/rehearsal.
func (f *Facade) startRehearsal(ctx context.Context, in *startRehearsal) (out *StartedRehearsal, err error) {
	err = f.rehearse(ctx, startRehearsalID, in, func(ctx context.Context, s *retire.Store, key domain.KeyID) (any, error) {
		until, err := s.StartRehearsal(ctx, key, time.Duration(*in.Body.Minutes)*time.Minute)
		out = &StartedRehearsal{Until: Time{until}}
		return out, err
	})
	return out, err
}

// endRehearsal implements DELETE /v1/rehearsal.
func (f *Facade) endRehearsal(ctx context.Context, in *endRehearsal) (*op.NoContent, error) {
	out := &op.NoContent{}
	err := f.rehearse(ctx, endRehearsalID, in, func(ctx context.Context, s *retire.Store, key domain.KeyID) (any, error) {
		return out, s.EndRehearsal(ctx, key)
	})
	return out, err
}

// errNoRehearsals is the response of a facade without a Keeper.
var errNoRehearsals = &domain.Error{Code: domain.Unavailable, Message: "rehearsals are not available"}

// rehearse changes the caller's rehearsal and writes its entry in the audit trail in one transaction, as other writes
// do, and refreshes this process's Keeper. If the refresh fails, the change arrives by notification, as in other
// processes. It returns errNoRehearsals without a Keeper.
func (f *Facade) rehearse(
	ctx context.Context, route string, in any, change func(context.Context, *retire.Store, domain.KeyID) (any, error),
) error {
	if f.Keeper == nil {
		return errNoRehearsals
	}
	err := f.v1.AroundWrite(ctx, f.ownOperation(route), in, func(ctx context.Context) (any, error) {
		return change(ctx, f.Keeper.Store(), domain.CallerFrom(ctx).Key)
	})
	if err == nil {
		_ = f.Keeper.Refresh(ctx)
	}
	return err
}

// ownOperation returns the operation of a route that only v1 has.
func (f *Facade) ownOperation(route string) op.Operation {
	all := f.own.All()
	return all[slices.IndexFunc(all, func(o op.Operation) bool { return o.Meta().ID == "v1."+route })]
}
