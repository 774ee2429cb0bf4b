import { hasSubscribers } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'

const CHANNELS = ['undici:request:create', 'http.client.request.created']

/** Whether this thread hears of outgoing requests. */
export const listens = (): boolean => CHANNELS.some(hasSubscribers)

/** The packages of OpenTelemetry that this thread has loaded. They are CommonJS, however they were asked for. */
export function loaded(): string[] {
  const names = Object.keys(createRequire(import.meta.url).cache)
    .map((file) => /node_modules\/(@opentelemetry\/[^/]+|@grpc\/[^/]+)/.exec(file)?.[1])
    .filter((name) => name !== undefined)
  return [...new Set(names)].sort()
}
