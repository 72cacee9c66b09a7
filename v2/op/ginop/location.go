package ginop

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain/rule"
	"partnerapi/v2/op"
)

// objectPlace says where the objects that an operation creates are: their path, and their place in the output.
type objectPlace struct {
	// path is the declared path of the objects, without their id; empty if the operation creates none.
	path string
	// member is the name of the output's member that is the object; empty if the output itself is the object.
	member string
}

// locations returns, by operation id, the place of what each creates, for the header Location. The path is that of the
// operation that reads such an object, otherwise updates, otherwise deletes it. Operations without such a path, or
// without an id in the output, are omitted.
func locations(set *op.Set) map[string]objectPlace {
	places := map[string]objectPlace{}
	for _, creating := range set.All() {
		if creating.Meta().Status != http.StatusCreated {
			continue
		}
		output := creating.Output()
		index := idIndex(output, true /* created */)
		if index == nil {
			continue
		}
		var place objectPlace
		if holder := output.Field(index[0]); len(index) > 1 && !holder.Anonymous { // not embedded: nested
			place.member = rule.WireName(holder) // the id is that of a member
		}
		for _, method := range []string{"GET", "PATCH", "DELETE"} {
			if place.path = objectPath(set, creating, output.FieldByIndex(index).Type, method); place.path != "" {
				places[creating.Meta().ID] = place
				break
			}
		}
	}
	return places
}

// objectPath looks for the operation with the method on one object of the id's kind, whose other path parameters the
// creating operation has too. It returns the path of that operation without the id; empty if there is none.
func objectPath(set *op.Set, creating op.Operation, id reflect.Type, method string) string {
	for _, o := range set.All() {
		params := o.Input().Path
		if o.Meta().Method != method || len(params) == 0 {
			continue
		}
		last := params[len(params)-1]
		rest, ok := strings.CutSuffix(o.Meta().Path, "/:"+last.Name)
		if ok && last.Type == id && containsParams(creating.Input().Path, params[:len(params)-1]) {
			return rest
		}
	}
	return ""
}

// containsParams reports whether the parameters contain all of the wanted ones, by name and type.
func containsParams(params, wanted []op.Param) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(params, func(p op.Param) bool { return p.Name == w.Name && p.Type == w.Type }) {
			return false
		}
	}
	return true
}

// setLocation sets the Location header of a created object: its path, with the id from the body or, if place has a
// member, from that member. It sets none for a dry run, or if there is no id.
func setLocation(c *gin.Context, prefix string, place objectPlace, body []byte) {
	var answer map[string]jsontext.Value
	if err := json.Unmarshal(body, &answer); err != nil || string(answer["dry_run"]) == "true" {
		return
	}
	if place.member != "" {
		body = answer[place.member] // the object alone
	}
	var created struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &created); err != nil || created.ID == "" {
		return
	}
	path := op.ReplaceParams(place.path, func(name string) string { return url.PathEscape(c.Param(name)) })
	c.Header("Location", prefix+path+"/"+url.PathEscape(created.ID))
}
