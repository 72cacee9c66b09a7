package figures

import (
	"testing"

	"partnerapi/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }
