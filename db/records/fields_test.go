package records

import (
	"reflect"
	"slices"
	"testing"

	"partnerapi/db"
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
		{domain.PartnerRecord{}, db.PartnerRow{}, nil},
		{domain.CourseRecord{}, importedCourse{}, []string{"Titles"}},
		{domain.ClientRecord{}, importedClient{}, []string{"Program", "Archived"}},
		{domain.AdminRecord{}, db.AdminRow{}, nil},
		{domain.GroupRecord{}, db.GroupRow{}, nil},
		{domain.UserRecord{}, db.UserRow{}, []string{"CollectionIDs", "SendWelcomeEmail", "Overrides"}},
		{domain.CollectionRecord{}, importedCollection{}, []string{"Members"}},
		{domain.PolicyRecord{}, importedPolicy{}, []string{"ScopeID", "Archived"}},
		{domain.FrameworkAssignmentRecord{}, importedFramework{}, []string{"Audience", "Modules"}},
		{domain.ResultRecord{}, importedResult{}, []string{"TemplateName"}},
		{domain.SentEmailRecord{}, db.SentEmailRow{}, nil},
		{domain.ExposureRecord{}, importedExposure{}, nil},
	} {
		record := reflect.TypeOf(k.record)
		columns := map[int]bool{}
		for _, f := range fieldsOf(record, reflect.TypeOf(k.row)) {
			columns[f.index] = f.column != nil
		}
		for i := range record.NumField() {
			f := record.Field(i)
			if name := f.Tag.Get("json"); name == "" || name == "id" {
				continue
			}
			if columns[i] == slices.Contains(k.others, f.Name) {
				t.Errorf("%s.%s: a column is %v", record, f.Name, columns[i])
			}
		}
	}
}
