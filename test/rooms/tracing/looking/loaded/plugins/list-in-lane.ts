import { hasSubscribers } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import { plugin } from '#heddle'

/** The packages of OpenTelemetry that its thread has loaded. They are CommonJS, however they were asked for. */
export default plugin(({ http }) => {
  const listens = CHANNELS.some(hasSubscribers)
  http.addEndpoint('/loaded/lane', 'GET', () => ({ success: true, data: { loaded: loaded(), listens } }))
})

const CHANNELS = ['undici:request:create', 'http.client.request.created']

function loaded(): string[] {
  const names = Object.keys(createRequire(import.meta.url).cache)
    .map((file) => /node_modules\/(@opentelemetry\/[^/]+|@grpc\/[^/]+)/.exec(file)?.[1])
    .filter((name) => name !== undefined)
  return [...new Set(names)].sort()
}
