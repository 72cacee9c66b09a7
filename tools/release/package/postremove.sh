#!/bin/sh
# The data and the user stay, also after a purge, which removes /etc/partnerapi.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ]; then
	rm -f /etc/partnerapi/partnerapi.env
	rmdir /etc/partnerapi 2>/dev/null || true
fi
case "$1" in
remove | purge | 0)
	if [ -d /var/lib/partnerapi ]; then
		echo "partnerapi: /var/lib/partnerapi and the user partnerapi are kept"
	fi
	;;
esac
