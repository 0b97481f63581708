#!/bin/sh
set -e

# The log in /var/lib/vitrine, the keys and their owner stay, also after a purge.
if [ "$1" = purge ] || [ "$1" = 0 ]; then
	rmdir /etc/vitrine/keys 2>/dev/null || true # which may hold keys
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
