// Hono on node:http, with the server that its project has for that.
import { serve } from '@hono/node-server'
import { honoApp } from './hono-app.ts'
import { announceReady, host, port } from './serve.ts'

serve({ fetch: honoApp().fetch, hostname: host, port }, announceReady)
