package v1compat

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/idmap"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// A route is a Meta, an operation of v2, and pure functions between v1's types and v2's, given to one of addCall,
// addList and addSingle. POST /v1/clients is, in clients.go:
//
//	addCall(f, Meta{
//		ID: "create-client", Method: "POST", Path: "/clients", Status: http.StatusCreated, …
//	}, api.CreateClient, fillCreateClient, toCreatedClient, nil)
//
// A request takes these steps (route.run):
//
//	{"company_name": "Acme"}                       the body
//	createClient{Body: {CompanyName: "Acme"}}      In, decoded; numbers in it become ids, in one batch
//	api.CreateClientInput{Body: {Name: "Acme"}}    V2In, from newRoute (the path) and fillCreateClient (the rest)
//	api.Client{ID: …, Name: "Acme"}                V2Out, which op.Call returns
//	CreatedClient{ID: …, ClientName: "Acme"}       Out, from toCreatedClient; ids in it become numbers, in one batch
//	{"id": 7, "client_name": "Acme"}               the response, with a Link to v2's request for the same
//
// The Link is the operation's own input. A route whose operation is not public names a Successor, and a last function
// that makes the input of that: nextSendPhishing.

// Meta is the declaration of a route, without its functions.
type Meta struct {
	// ID names the route in metrics, logs and the document.
	ID           string
	Method, Path string
	Summary      string
	// Description adds to the summary, in Markdown.
	Description string
	// Status is the HTTP status of a success.
	Status int
	// Fails are the error statuses that v1 documents for the route, besides those of all routes (shared).
	Fails []int
	// Fields maps fields of the v2 operation, without indexes, to their v1 names where these differ.
	Fields map[string]string
	// Successor is the public v2 operation to call instead of the route. In a declaration, nil means the operation
	// that the route itself calls.
	Successor op.Declaration
	// GivenUp lists, sorted, the members of v1's items for which the successor's JSON has no value.
	GivenUp []string
	// Reordered reports whether the successor lists the objects in another order.
	Reordered bool
	// Additive reports whether the route is missing in v1's own document: it has no phase and no successor.
	Additive bool
	// Guide is the path of the migration guide, with the route's page and fragment unless it is Additive. add sets it.
	Guide string
}

// route is a Meta with its operation and its functions.
type route struct {
	Meta
	operation op.Declaration
	// set is the set that binds the operation; nil in a facade from Declare.
	set    *op.Set
	input  *op.Input
	output reflect.Type
	// toV2 converts v1's input to v2's. Some fields of v1's may be empty.
	toV2   func(in any) any
	answer func(ctx context.Context, in any) (reply, error)
	// toNext converts the operation's input, and its output (nil before the call), to the successor's input; it returns
	// nil if there is none.
	toNext func(input, out any) any
	// v2Output is the operation's output, or a row of its list. fromV2 converts a pointer to it to a pointer to v1's
	// output, or to an item of that.
	v2Output reflect.Type
	fromV2   func(out any) any
	facade   *Facade
}

// shared are the error statuses of all routes: 400, for instance, for a malformed query string.
var shared = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden,
	http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
}

// addCall adds a route that calls an operation. fill sets in v2's input what v1's input has besides the path. from
// converts the output. next converts v2's input, and the output of the call (nil before it), to the input of the
// route's Successor; it returns nil if no request of that has the same response. If fill is nil, there is nothing to
// set; if next is nil, route.withSamePath takes its place.
func addCall[In, V2In, V2Out, Out any](
	f *Facade, meta Meta, o *op.Op[V2In, V2Out], fill func(*In, *V2In), from func(*V2Out) *Out,
	next func(*V2In, *V2Out) any,
) {
	r := newRoute[Out](meta, o, fill, from, next)
	r.answer = func(ctx context.Context, in any) (reply, error) {
		input := r.toV2(in).(*V2In)
		out, err := op.Call(ctx, r.set, o, input)
		if err != nil {
			return reply{}, err
		}
		return reply{from(out), r.toNext(input, out)}, nil
	}
	f.add(r)
}

// addList adds a route that returns one page of an operation's list, with the fill and next of addCall. The input's
// Query embeds a window type, which fill leaves alone. item converts a row.
func addList[In, V2In, Row, Item any](
	f *Facade, meta Meta, o *op.Op[V2In, op.Page[Row]], fill func(*In, *V2In), item func(Row) Item,
	next func(*V2In, *op.Page[Row]) any,
) {
	r := newRoute[Paging[Item]](meta, o, fill, func(row *Row) *Item { return new(item(*row)) }, next)
	r.answer = func(ctx context.Context, in any) (reply, error) {
		bounds, err := pageOf(in)
		if err != nil {
			return reply{}, err
		}
		input := r.toV2(in).(*V2In)
		walk, page, err := readPage(ctx, r, o, input, bounds)
		if err != nil {
			return reply{}, err
		}

		out := &Paging[Item]{Items: make([]Item, len(page.Data)), Limit: walk.limit, Offset: walk.offset}
		for i, row := range page.Data {
			out.Items[i] = item(row)
		}
		out.Total = walk.total(page.Total, len(page.Data), page.Page.HasMore)
		a := reply{out: out} // without next if the successor has no page with the same objects
		samePage, found := successorPage(bounds, len(page.Data), !page.Page.HasMore, meta.Reordered)
		if found && r.hasServedSuccessor() {
			if a.next = r.toNext(input, page); a.next != nil {
				*pagingOf(a.next) = samePage
			}
		}
		return a, f.saveCheckpoint(ctx, walk, len(page.Data), page.End)
	}
	f.add(r)
}

// readPage reads a page of an operation's list as part of a walk by offset. input is the operation's, without its
// Paging. If the checkpoint's cursor is stale, readPage reads the page by its offset.
func readPage[V2In, Row any](
	ctx context.Context, r *route, o *op.Op[V2In, op.Page[Row]], input *V2In, page pageRequest,
) (walk, *op.Page[Row], error) {
	w, err := r.facade.beginPage(ctx, r.ID, o, input, page)
	if err != nil {
		return w, nil, err
	}
	paging := pagingOf(input)
	*paging = w.paging()
	read, err := op.Call(ctx, r.set, o, input)
	if w.isStaleCursor(err) {
		w.cursor = ""
		*paging = w.paging()
		read, err = op.Call(ctx, r.set, o, input)
	}
	return w, read, err
}

// addSingle adds a route that shows the object of a call as a list of one. v2's input has nothing but the path. v1's
// Query embeds a window type; beyond offset 0 the list is empty, and has no link.
func addSingle[In, V2In, V2Out, Item any](f *Facade, meta Meta, o *op.Op[V2In, V2Out], from func(*V2Out) *Item) {
	r := newRoute[Paging[Item], In](meta, o, nil /* fill */, from, nil /* next */)
	r.answer = func(ctx context.Context, in any) (reply, error) {
		bounds, err := pageOf(in)
		if err != nil {
			return reply{}, err
		}
		input := r.toV2(in).(*V2In)
		object, err := op.Call(ctx, r.set, o, input)
		if err != nil {
			return reply{}, err
		}
		page := &Paging[Item]{Items: []Item{}, Limit: bounds.limit, Offset: bounds.offset, Total: 1}
		if bounds.offset > 0 {
			return reply{out: page}, nil
		}
		page.Items = append(page.Items, *from(object))
		return reply{page, input}, nil
	}
	f.add(r)
}

// newRoute returns a route that cannot answer yet, whose output is an Out. Its toV2 copies the path to v2's input, and
// calls fill unless nil. from converts V2Out or, if that is a page, a row of it.
func newRoute[Out, In, V2In, V2Out, Shown, Item any](
	meta Meta, o *op.Op[V2In, V2Out], fill func(*In, *V2In), from func(*Shown) *Item, next func(*V2In, *V2Out) any,
) *route {
	r := &route{
		Meta: meta, operation: o, input: op.Describe(reflect.TypeFor[In]()), output: reflect.TypeFor[Out](),
		v2Output: reflect.TypeFor[Shown](), fromV2: func(shown any) any { return from(shown.(*Shown)) },
	}
	if next != nil {
		r.toNext = func(input, out any) any {
			called, _ := out.(*V2Out) // nil before the call
			return next(input.(*V2In), called)
		}
	}
	path := newPathCopy(reflect.TypeFor[V2In](), reflect.TypeFor[In]())
	r.toV2 = func(in any) any {
		input := new(V2In)
		path.apply(input, in)
		if paging := pagingOf(input); paging != nil {
			paging.Limit = 1 // valid, and enough to look up ids by a call; a page that is read sets its own
		}
		if fill != nil {
			fill(in.(*In), input)
		}
		return input
	}
	return r
}

// withSamePath returns a toNext that returns the operation's input itself if the operation is the route's Successor or
// the route has none, otherwise an input of the Successor with the same path.
func (r *route) withSamePath() func(input, out any) any {
	if r.Successor == nil || r.Successor == r.operation {
		return func(input, _ any) any { return input }
	}
	successor := r.Successor.Input()
	path := newPathCopy(successor.Type, r.operation.Input().Type)
	return func(input, _ any) any {
		next := successor.New()
		path.apply(next, input)
		return next
	}
}

// pathCopy lists the ids that are copied from the path of an input to that of another one, by the indexes of their
// fields in both.
type pathCopy []struct{ to, from []int }

// newPathCopy returns the copy from the path of an input, of v1 or v2, to that of an input of v2. The fields of both
// have the same names: it panics if they have not, a programming error. If either input has no path, it copies nothing.
func newPathCopy(to, from reflect.Type) (list pathCopy) {
	target, hasTarget := to.FieldByName("Path")
	source, hasSource := from.FieldByName("Path")
	if !hasTarget || !hasSource {
		return nil
	}
	for _, f := range reflect.VisibleFields(target.Type) {
		if f.Anonymous {
			continue
		}
		id, ok := source.Type.FieldByName(f.Name)
		if !ok {
			panic(fmt.Sprintf("the path of %s has no %s", from, f.Name)) // when the route is declared, at the start
		}
		index := slices.Concat(source.Index, id.Index)
		if id.Type.Kind() == reflect.Struct { // a Ref or a UUID of v1
			own, _ := id.Type.FieldByName("ID")
			index = append(index, own.Index...)
		}
		list = append(list, struct{ to, from []int }{slices.Concat(target.Index, f.Index), index})
	}
	return list
}

// apply copies the ids.
func (list pathCopy) apply(to, from any) {
	target, source := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for _, f := range list {
		target.FieldByIndex(f.to).Set(source.FieldByIndex(f.from))
	}
}

// pagingOf returns the Paging in an input of v2; nil if the operation is no list.
func pagingOf(input any) *op.Paging {
	if query := reflect.ValueOf(input).Elem().FieldByName("Query"); query.IsValid() {
		if paging := query.FieldByName("Paging"); paging.IsValid() {
			return paging.Addr().Interface().(*op.Paging)
		}
	}
	return nil
}

// next returns the successor's input for v1's; nil if the successor has none that does the same. locate sets in v2's
// input the ids that the operation itself would find, for the successor's path.
func (r *route) next(in any, locate func(input any) error) (any, error) {
	input := r.toV2(in)
	if err := locate(input); err != nil {
		return nil, err
	}
	next := r.toNext(input, nil /* before the call */)
	if next == nil {
		return nil, nil
	}
	if paging := pagingOf(next); paging != nil {
		page, err := pageOf(in)
		if err != nil {
			return nil, err
		}
		*paging = firstPage(page, r.Reordered)
	}
	return next, nil
}

// add adds a route to the table. It sets the route's Guide and, unless declared or Additive, its Successor; toNext, if
// nil, is that of withSamePath. It panics if the route does not fit its operation, a programming error.
func (f *Facade) add(r *route) {
	if err := r.check(); err != nil {
		panic("v1 route " + r.ID + ": " + err.Error())
	}
	if r.Successor == nil && !r.Additive {
		r.Successor = r.operation
	}
	if r.toNext == nil {
		r.toNext = r.withSamePath()
	}
	r.facade, r.Guide = f, guide
	if !r.Additive {
		r.Guide += "/" + r.guidePage() + "#" + anchor(r.Method, "/v1"+r.Path)
	}
	f.routes = append(f.routes, r)
}

// serve answers one request, with a link to its successor. An error of v2 is translated.
func (r *route) serve(c *gin.Context) error {
	if err := r.checkPhase(c); err != nil {
		return err
	}
	a, err := r.run(c)
	if err != nil {
		return r.translateError(domain.AsError(err))
	}
	addLink(c, r.link(a.next))
	if r.Status == http.StatusNoContent {
		c.Status(r.Status)
		c.Writer.WriteHeaderNow()
		return nil
	}
	if e, ok := a.out.(encoder); ok { // it has its own JSON options
		return ginop.WriteJSON(c, r.Status, a.out, e.encoding())
	}
	return ginop.WriteJSON(c, r.Status, a.out)
}

// encoder is an output with its own JSON options.
type encoder interface{ encoding() json.Options }

// run authorizes, decodes and answers the request. It replaces numbers by ids before, and ids by numbers after that.
func (r *route) run(c *gin.Context) (reply, error) {
	if err := op.Authorize(c.Request.Context(), r.operation.Meta()); err != nil {
		return reply{}, err
	}
	in, _, err := ginop.Decode(c, r.input, r.input.New(), true /* lenient */) // without the raw body
	if err != nil {
		return reply{}, r.addV2Faults(in, domain.AsError(err))
	}
	ctx := c.Request.Context() // replaced by Decode: the time limit begins when the body has been read

	// An unused number stays unresolved: v2 then finds nothing, as for an object that the key has no access to.
	lookup, err := idmap.Resolve(ctx, r.facade.Registry, in)
	if err != nil {
		return reply{}, err
	}
	a, err := r.answer(ctx, in)
	if err != nil {
		return reply{}, err
	}
	lookup.Cache() // a success shows that the key may access the objects
	return a, idmap.Number(ctx, r.facade.Registry, a.out)
}

// check returns an error if the route does not fit its operation: if the operation has an error for whose status v1
// documents none, or lacks a field of Fields.
func (r *route) check() error {
	for _, code := range r.operation.Meta().Fails {
		status := op.StatusOf(code)
		if !slices.Contains(r.Fails, status) && !slices.Contains(shared, status) {
			return fmt.Errorf("operation %s fails with %s, for which the route has no status", r.operation.Meta().ID, code)
		}
	}
	for field := range r.Fields {
		if !hasField(r.operation.Input(), field) {
			return fmt.Errorf("operation %s has no field %s", r.operation.Meta().ID, field)
		}
	}
	return nil
}

// hasField reports whether an input has the field, as a parameter or a field of the body.
func hasField(in *op.Input, name string) bool {
	if slices.ContainsFunc(slices.Concat(in.Path, in.Query), func(p op.Param) bool { return p.Name == name }) {
		return true
	}
	return in.Body != nil && slices.ContainsFunc(reflect.VisibleFields(in.Body), func(f reflect.StructField) bool {
		return rule.WireName(f) == name
	})
}

// addOwn adds a route that is not in v1's own document, for callers who move to v2 (decisions 11.3, 11.4, 11.9). Its
// operation has the ID v1.ID and the scope read, and is not part of v2; documents list it under the tag partner.
// Otherwise it is like any route.
func addOwn[In, Out any](f *Facade, meta Meta, run func(context.Context, *In) (*Out, error)) {
	meta.Additive = true
	o := op.Add(f.own, op.Meta{
		ID: "v1." + meta.ID, Tag: "partner", Method: meta.Method, Path: meta.Path, Scope: domain.Read, Since: op.V2_0,
		Status: meta.Status, Summary: meta.Summary,
	}, run)
	addCall(f, meta, o, func(in, out *In) { *out = *in }, func(out *Out) *Out { return out }, nil)
}
