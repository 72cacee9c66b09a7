package doctor_test

import (
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var noon = worldtest.Noon

type row = fixture.Row
