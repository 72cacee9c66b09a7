#!/bin/sh
# Services that run go on with the new program. A first installation starts none: it has to
# be told its database before.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart partnerapi.service partnerapi-work.service || true
fi
