#!/bin/sh
set -e

# The log in /var/lib/vitrine and its owner stay, also after a purge.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
