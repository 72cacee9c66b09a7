package ginop

import (
	"context"
	"net/http"
	"net/netip"
	"reflect"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

type requestKey struct{}

// requestOf is what the audit trail records of a request.
type requestOf struct {
	id, method, path string
	address          netip.Addr
}

// withRequest returns the context of a request that may write, with what the audit
// trail says of it.
func withRequest(c *gin.Context) context.Context {
	ctx, r := c.Request.Context(), c.Request
	return context.WithValue(ctx, requestKey{}, requestOf{RequestID(c), r.Method, r.URL.Path, domain.AddressFrom(ctx)})
}

// audited is an op.AroundWrite: it runs the work of a request in a transaction
// that commits together with its line of the audit trail. What the process
// calls by itself, for no request, leaves none, and neither does a dry run.
func (e *Edge) audited(
	ctx context.Context, o op.Operation, in any, work func(context.Context) (any, error),
) error {
	request, ok := ctx.Value(requestKey{}).(requestOf)
	if !ok {
		_, err := work(ctx)
		return err
	}
	return e.InTx(ctx, func(ctx context.Context) error {
		out, err := work(ctx)
		if err != nil || dryRun(out) {
			return err
		}

		caller := domain.CallerFrom(ctx)
		entry := domain.AuditEntry{
			Partner: caller.Partner, Key: caller.Key, Prefix: caller.Prefix, Address: request.address,
			Operation: o.Meta().ID, Method: request.method, Path: request.path, RequestID: request.id,
		}
		entry.Client, entry.User = o.Input().Subject(in)
		entry.Object, entry.Fields = o.Input().Object(in), o.Input().Given(in)
		describe(&entry, o, out)
		return e.Audit(ctx, entry)
	})
}

// dryRun reports whether an output says so of its operation, by its field DryRun.
func dryRun(out any) bool {
	v := reflect.Indirect(reflect.ValueOf(out))
	if v.Kind() != reflect.Struct {
		return false
	}
	of := v.FieldByName("DryRun")
	return of.IsValid() && of.Kind() == reflect.Bool && of.Bool()
}

// describe adds to an entry the object, the client and the user that an output is
// about, by its fields ID and ClientID, or as an op.OfClient: what was created, the
// client of a user, or the one that an operation without one in its path found.
func describe(entry *domain.AuditEntry, o op.Operation, out any) {
	if of, ok := out.(op.OfClient); ok && entry.Client.IsZero() {
		entry.Client = of.BudgetClient()
	}
	v := reflect.Indirect(reflect.ValueOf(out))
	if v.Kind() != reflect.Struct {
		return
	}
	if of := v.FieldByName("ClientID"); of.IsValid() && entry.Client.IsZero() {
		entry.Client, _ = of.Interface().(domain.ClientID)
	}
	shown := idShown(v, o.Meta().Status == http.StatusCreated)
	if object := op.ObjectOf(shown); object != (domain.AuditObject{}) {
		entry.Object = object
	}
	switch id := shown.(type) {
	case domain.ClientID:
		entry.Client = id
	case domain.UserID:
		entry.User = id
	}
}

// idShown is the id that an output shows, or that its part shows which was created;
// nil for none.
func idShown(v reflect.Value, created bool) any {
	if id := v.FieldByName("ID"); id.IsValid() {
		return id.Interface()
	}
	if !created {
		return nil
	}
	for i := range v.NumField() {
		if part := v.Field(i); part.Kind() == reflect.Struct {
			if id := part.FieldByName("ID"); id.IsValid() {
				return id.Interface()
			}
		}
	}
	return nil
}
