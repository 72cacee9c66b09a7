package v1compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// This file is a client of version 1 as an integrator has one: written from the
// document of version 1 alone, with models and a paging loop of its own. It knows
// nothing of the service's code, and takes nothing that the document does not
// name: no other status, no other field, no other value of an enum, no other form
// of a time. Headers that it does not know it ignores, as clients do.

// legacy is the client, with one key.
type legacy struct {
	base, key string
	http      *http.Client
	template  int // that it sends to new users
	calls     int // that were answered
}

// undocumented is an answer that version 1's document does not allow.
type undocumented struct{ what string }

func (e *undocumented) Error() string { return "not in the document of version 1: " + e.what }

// legacyRefusal is a documented failure.
type legacyRefusal struct {
	status  int
	message string
}

func (e *legacyRefusal) Error() string { return fmt.Sprintf("%d: %s", e.status, e.message) }

// errLegacyGone is 410, which the document does not have: only a key whose phase says
// so may see it.
var errLegacyGone = errors.New("410 Gone")

// legacyFailures are the statuses of failure of the whole interface.
var legacyFailures = []int{400, 401, 403, 404, 409, 429, 500, 503}

// legacyTime is a timestamp: ISO 8601, UTC, whole seconds.
type legacyTime string

func (t legacyTime) valid() bool {
	_, err := time.Parse("2006-01-02T15:04:05Z", string(t))
	return err == nil
}

// legacyWord is one of a field's words, which its tag words lists.
type legacyWord string

// The objects, as the document has them. Fields with omitempty may be absent.
type (
	legacyPage[T any] struct {
		Items  []T `json:"items"`
		Limit  int `json:"limit"`
		Offset int `json:"offset"`
		Total  int `json:"total"`
	}
	legacyPartner struct {
		Name    string        `json:"partner_name"`
		Created legacyTime    `json:"created_date"`
		Admins  []legacyAdmin `json:"admins"`
	}
	legacyAdmin struct {
		ID      string     `json:"id"`
		Email   string     `json:"email"`
		Role    legacyWord `json:"role" words:"Administrator User"`
		First   string     `json:"first_name,omitempty"`
		Last    string     `json:"last_name,omitempty"`
		Created legacyTime `json:"created_date"`
	}
	legacyClient struct {
		ID             int        `json:"id"`
		Name           string     `json:"client_name"`
		Created        legacyTime `json:"created_date"`
		Users          int        `json:"user_count"`
		Inactive       int        `json:"inactive_user_count"`
		ClicksTotal    float64    `json:"phishing_click_rate_total"`
		ClicksLastYear float64    `json:"phishing_click_rate_last_year"`
		OnTrack        float64    `json:"training_on_track_rate"`
	}
	legacyCreatedClient struct {
		ID   int    `json:"id"`
		Name string `json:"client_name"`
	}
	legacyUser struct {
		ID             string     `json:"id"`
		Email          string     `json:"email"`
		First          string     `json:"first_name"`
		Last           string     `json:"last_name"`
		Department     string     `json:"department"`
		Status         legacyWord `json:"status" words:"active inactive"`
		Language       legacyWord `json:"preferred_language" words:"en es fr-ca"`
		Role           legacyWord `json:"role" words:"admin executive hr finance standard"`
		Created        legacyTime `json:"created_date"`
		ClicksTotal    float64    `json:"phishing_click_rate_total"`
		ClicksLastYear float64    `json:"phishing_click_rate_last_year"`
		OnTrack        bool       `json:"training_on_track"`
		Next           string     `json:"next_course"`
		Behind         int        `json:"courses_behind"`
		Score          int        `json:"risk_score"`
	}
	legacyCreatedUser struct {
		ID     string     `json:"id"`
		Email  string     `json:"email"`
		First  string     `json:"first_name"`
		Last   string     `json:"last_name"`
		Status legacyWord `json:"status" words:"active"`
		Role   legacyWord `json:"role" words:"admin executive hr finance standard"`
	}
	legacyTraining struct {
		Order         int        `json:"order"`
		Course        string     `json:"course_name"`
		Completed     bool       `json:"completed"`
		CompletedDate legacyTime `json:"completed_date"`
		Passed        bool       `json:"passed"`
		PassedDate    legacyTime `json:"passed_date"`
	}
	legacyPhishing struct {
		Status legacyWord `json:"status" words:"Sent Opened Clicked"`
		Date   legacyTime `json:"status_date"`
	}
	legacyCollection struct {
		ID          int        `json:"id"`
		Name        string     `json:"name"`
		Description string     `json:"description,omitempty"`
		Members     int        `json:"member_count"`
		Created     legacyTime `json:"created_date"`
	}
	legacyMember struct {
		User  string `json:"user_infima_id"`
		Name  string `json:"name"`
		Email string `json:"email"`
	}
	legacyPolicy struct {
		ID           int        `json:"id"`
		Title        string     `json:"title"`
		Description  string     `json:"description,omitempty"`
		Version      int        `json:"version"`
		Scope        legacyWord `json:"scope_type" words:"tenant user_container collection"`
		ScopeID      int        `json:"scope_id"`
		MustSign     bool       `json:"requires_acknowledgment"`
		Renewal      int        `json:"renewal_period_days"`
		Created      legacyTime `json:"created_date"`
		Audience     int        `json:"audience_user_count,omitempty"`
		Acknowledged int        `json:"acknowledged_count,omitempty"`
		Percentage   float64    `json:"acknowledged_percentage,omitempty"`
	}
	legacyPolicyUser struct {
		ID           string     `json:"id"`
		Email        string     `json:"email"`
		Name         string     `json:"name"`
		Acknowledged bool       `json:"acknowledged"`
		At           legacyTime `json:"acknowledged_at,omitempty"`
	}
	legacyExposures struct {
		ID         string `json:"id"`
		Email      string `json:"email"`
		First      string `json:"first_name"`
		Last       string `json:"last_name"`
		Resolved   int    `json:"resolved_exposures"`
		Unresolved int    `json:"unresolved_exposures"`
	}
	legacyReport struct {
		ID      string     `json:"report_id"`
		Type    string     `json:"report_type"`
		Created legacyTime `json:"created_date"`
		Updated legacyTime `json:"updated_at"`
		Link    string     `json:"download_link,omitempty"`
	}
	legacyEmail struct {
		Message string     `json:"message_infima_id"`
		User    string     `json:"user_infima_id"`
		Time    legacyTime `json:"event_time"`
		From    string     `json:"from_email"`
		Subject string     `json:"subject"`
		Method  legacyWord `json:"send_method" words:"microsoft-api smtp gmail-api"`
		Type    legacyWord `json:"message_type" words:"training-invite phishing phish-reminder certificate monthly-report"`
	}
	legacyDone struct {
		Status legacyWord `json:"status" words:"updated added removed"`
	}
	legacyMessage struct {
		Message string `json:"message"`
	}
)

// legacyCall makes a request and reads its answer into a T. The errors are
// *legacyRefusal, errLegacyGone and *undocumented.
func legacyCall[T any](c *legacy, status int, method, path string, body any) (out T, err error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return out, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, c.base+path, content)
	if err != nil {
		return out, err
	}
	request.Header.Set("X-API-Key", c.key)
	request.Header.Set("User-Agent", "legacy-integration/1.4")
	answer, err := c.http.Do(request)
	if err != nil {
		return out, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return out, err
	}
	c.calls++

	strange := func(format string, args ...any) error {
		return &undocumented{fmt.Sprintf("%s %s: %s: %s", method, path, fmt.Sprintf(format, args...), text)}
	}
	switch {
	case answer.StatusCode == http.StatusGone:
		return out, errLegacyGone
	case slices.Contains(legacyFailures, answer.StatusCode):
		return out, &legacyRefusal{answer.StatusCode, string(text)}
	case answer.StatusCode != status:
		return out, strange("status %d", answer.StatusCode)
	case !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json"):
		return out, strange("content type %s", answer.Header.Get("Content-Type"))
	}
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		return out, strange("%v", err)
	}
	if err := legacyFits(reflect.TypeFor[T](), raw); err != nil {
		return out, strange("%v", err)
	}
	return out, json.Unmarshal(text, &out)
}

// legacyFits reports what of a JSON value is not as the model says.
func legacyFits(t reflect.Type, value any) error {
	switch v := value.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return fmt.Errorf("an array, not a %s", t)
		}
		for i, item := range v {
			if err := legacyFits(t.Elem(), item); err != nil {
				return fmt.Errorf("[%d]: %w", i, err)
			}
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return fmt.Errorf("an object, not a %s", t)
		}
		return legacyObject(t, v)
	case string:
		if t == reflect.TypeFor[legacyTime]() && !legacyTime(v).valid() {
			return fmt.Errorf("%q is not a time", v)
		}
		if t.Kind() != reflect.String {
			return fmt.Errorf("a text, not a %s", t)
		}
	case float64:
		if t.Kind() != reflect.Float64 && (t.Kind() != reflect.Int || v != float64(int32(v))) {
			return fmt.Errorf("%v, not a %s", v, t)
		}
	case bool:
		if t.Kind() != reflect.Bool {
			return fmt.Errorf("%v, not a %s", v, t)
		}
	default:
		return fmt.Errorf("null, not a %s", t)
	}
	return nil
}

// legacyObject is legacyFits for an object: it has every field of the model that
// may not be absent, and no other.
func legacyObject(t reflect.Type, object map[string]any) error {
	known := 0
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		value, there := object[name]
		switch {
		case !there && option == "":
			return fmt.Errorf("%s is missing", name)
		case !there:
			continue
		}
		known++
		if err := legacyFits(f.Type, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if words := f.Tag.Get("words"); words != "" && !slices.Contains(strings.Fields(words), fmt.Sprint(value)) {
			return fmt.Errorf("%s is %v, none of %s", name, value, words)
		}
	}
	if known < len(object) {
		return fmt.Errorf("%d fields that the document does not name", len(object)-known)
	}
	return nil
}

// legacyList reads a whole list: page by page, until as many items as the total
// came.
func legacyList[T any](c *legacy, path string, limit int) ([]T, error) {
	return legacyListBy[T](c, http.MethodGet, path, nil, limit)
}

// legacyListBy is legacyList for any method and body.
func legacyListBy[T any](c *legacy, method, path string, body any, limit int) (all []T, err error) {
	path, filters, _ := strings.Cut(path, "?")
	query, err := url.ParseQuery(filters)
	if err != nil {
		return nil, err
	}
	query.Set("limit", fmt.Sprint(limit))
	for offset := 0; ; {
		query.Set("offset", fmt.Sprint(offset))
		page, err := legacyCall[legacyPage[T]](c, http.StatusOK, method, path+"?"+query.Encode(), body)
		if err != nil {
			return all, err
		}
		if page.Limit != limit || page.Offset != offset || len(page.Items) > limit {
			return all, &undocumented{fmt.Sprintf("%s: %d items of limit %d at offset %d", path, len(page.Items), page.Limit, page.Offset)}
		}
		all = append(all, page.Items...)
		if offset += len(page.Items); offset >= page.Total || len(page.Items) == 0 {
			return all, nil
		}
	}
}
