package db

import (
	"reflect"
	"slices"
	"testing"

	"partnerapi/domain"
)

// TestFieldsOfRecords: each field of a record is a column of its row, or one that its
// kind sets by itself.
func TestFieldsOfRecords(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		record, row any
		others      []string
	}{
		{domain.PartnerRecord{}, partnerRow{}, nil},
		{domain.CourseRecord{}, importedCourse{}, []string{"Titles"}},
		{domain.ClientRecord{}, importedClient{}, []string{"Program", "Archived"}},
		{domain.AdminRecord{}, adminRow{}, nil},
		{domain.GroupRecord{}, groupRow{}, nil},
		{domain.UserRecord{}, userRow{}, []string{"CollectionIDs", "SendWelcomeEmail", "Overrides"}},
		{domain.CollectionRecord{}, collectionRow{}, []string{"Members"}},
		{domain.PolicyRecord{}, importedPolicy{}, []string{"ScopeID", "Archived"}},
		{domain.FrameworkAssignmentRecord{}, frameworkRow{}, []string{"Audience", "Modules"}},
		{domain.ResultRecord{}, resultRow{}, []string{"TemplateName"}},
		{domain.SentEmailRecord{}, sentEmailRow{}, nil},
		{domain.ExposureRecord{}, importedExposure{}, nil},
		{domain.ExposureRecord{}, exposureRow{}, nil},
	} {
		record := reflect.TypeOf(k.record)
		columns := map[int]bool{}
		for _, p := range pairsOf(record, reflect.TypeOf(k.row)) {
			columns[p.field] = true
		}
		for i := range record.NumField() {
			f := record.Field(i)
			if name := f.Tag.Get("record"); name == "" || name == "id" {
				continue
			}
			if columns[i] == slices.Contains(k.others, f.Name) {
				t.Errorf("%s.%s: a column is %v", record, f.Name, columns[i])
			}
		}
	}
}

// TestFieldsOfEmbeddedRows: what embeds a row has its columns.
func TestFieldsOfEmbeddedRows(t *testing.T) {
	t.Parallel()
	for _, rows := range [][2]any{
		{collectionRow{}, exportedCollection{}}, {resultRow{}, exportedResult{}}, {frameworkRow{}, exportedFramework{}},
	} {
		record := map[any]reflect.Type{
			collectionRow{}: reflect.TypeFor[domain.CollectionRecord](), resultRow{}: reflect.TypeFor[domain.ResultRecord](),
			frameworkRow{}: reflect.TypeFor[domain.FrameworkAssignmentRecord](),
		}[rows[0]]
		if a, b := pairsOf(record, reflect.TypeOf(rows[0])), pairsOf(record, reflect.TypeOf(rows[1])); len(a) != len(b) {
			t.Errorf("%s: %d columns, and not %d", reflect.TypeOf(rows[1]), len(b), len(a))
		}
	}
}
