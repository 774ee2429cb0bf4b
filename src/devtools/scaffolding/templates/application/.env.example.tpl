# Copy it to .env. Every setting has a default; these are the first ones to change.
# HTTP_HOST=0.0.0.0
# HTTP_PORT=8000
# HTTP_ALLOWED_HOSTS=example.com
# At least 32 characters; needed as soon as HTTP_HOST is no loopback address: openssl rand -base64 48
# AUTH_SECRET_KEY=
# Whoever has it may read and change /system.
# SYSTEM_TOKEN=
# SQLITE_PATH=data/service.db
# What libraries read from process.env in plugins, beside what Node and the system have; a plugin reads its own variables with config.get.
{{laneEnv}}
{{settings}}