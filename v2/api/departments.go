package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Department is a department of a client as v2 shows it, or the users without one.
type Department struct {
	Department   *string `json:"department" doc:"Name of the department; if spellings differ, the most common one among its active users, if it has any. Null for the users without a department, whose item comes last."`
	Users        int     `json:"users" doc:"Number of users, including inactive ones."`
	ActiveUsers  int     `json:"active_users" doc:"Number of active users. The average score, overdue users and click rate also cover only active users."`
	AverageScore int     `json:"average_score" doc:"Average risk score, from 0 to 1000; higher is safer. 750 if the department has no active users."`
	OverdueUsers int     `json:"overdue_users" doc:"Number of users with an overdue course."`
	ClickRate90d float64 `json:"click_rate_90d" doc:"Percentage of simulated emails sent in the last 90 days that were clicked, from 0 to 100. 0 if none were sent."`
}

// ListDepartments lists a client's departments.
var ListDepartments = op.DeclareList[ListDepartmentsInput, Department](op.Meta{
	ID: "departments.list", Tag: "users", Starred: true, Method: "GET", Path: "/clients/:client_id/departments", Scope: domain.Read, Since: op.V2_5, Status: 200,
	Summary: "List departments",
	Description: "Returns the client's departments in alphabetical order, each with its user counts, average risk score, number of " +
		"overdue users and click rate. Spellings that differ only in case or whitespace count as one department.",
	Columns: []string{"department", "users", "active_users", "average_score", "overdue_users", "click_rate_90d"},
})

// ListDepartmentsInput asks for a page of a client's departments.
type ListDepartmentsInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
	}
}
