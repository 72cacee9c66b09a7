package transfer_test

import "testing"

// school is a platform with one of everything that refers to something.
func school() []string {
	return []string{
		ref("partner", 1, `'name':'Northwind'`),
		ref("course", 2, `'title':'Safe work','renewal_months':6,'titles':{'en':'Safe work','es':'Trabajo seguro'}`),
		ref("client", 10, `'partner':#1,'name':'Acme','industry':'Steel','created_at':'2025-01-02T03:04:05Z',
			'program':[{'course':#2,'due_after_days':20},'019B7740-0000-7000-8000-000000000001']`),
		ref("admin", 11, `'client':#10,'email':'Boss@Acme.example','name':'The Boss','role':'owner'`),
		ref("group", 12, `'client':#10,'name':'Sales'`),
		ref("group", 13, `'client':#10,'name':'By hand','manual':true`),
		ref("user", 20, `'client':#10,'email':'Ana@acme.example','first_name':'Ana','job_title':'CFO','created_at':'2026-06-01T00:00:00Z'`),
		ref("user", 21, `'client':#10,'email':'bo@acme.example','role':'hr','group':#12,'status':'inactive','created_at':'2025-06-01T00:00:00Z','collection_ids':[#30]`),
		ref("collection", 30, `'client':#10,'name':'Board','members':[#20],'created_at':'2026-01-01T00:00:00Z'`),
		ref("policy", 40, `'client':#10,'title':'Clean desk','scope_type':'collection','scope_id':#30,'version':3`),
	}
}

func TestSchool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("10 created, 0 updated, 0 unchanged", school()...)
	w.want("0 created, 0 updated, 10 unchanged", school()...)
}
