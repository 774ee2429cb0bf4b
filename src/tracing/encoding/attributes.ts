/**
 * Names of attributes, as OpenTelemetry's semantic conventions 1.37 have them: HTTP, database and code are stable there, messaging
 * is in development. https://opentelemetry.io/docs/specs/semconv/ What is ours begins with `heddle.`
 */
export const ATTR = {
  HTTP_METHOD: 'http.request.method',
  HTTP_METHOD_ORIGINAL: 'http.request.method_original',
  HTTP_ROUTE: 'http.route',
  HTTP_STATUS: 'http.response.status_code',
  URL_PATH: 'url.path',
  URL_QUERY: 'url.query',
  URL_SCHEME: 'url.scheme',
  SERVER_ADDRESS: 'server.address',
  SERVER_PORT: 'server.port',
  PROTOCOL_VERSION: 'network.protocol.version',
  USER_AGENT: 'user_agent.original',
  ERROR_TYPE: 'error.type',
  CODE_FUNCTION: 'code.function.name',
  DB_RESPONSE_STATUS: 'db.response.status_code',
  MESSAGING_SYSTEM: 'messaging.system',
  MESSAGING_OPERATION: 'messaging.operation.name',
  MESSAGING_OPERATION_TYPE: 'messaging.operation.type',
  MESSAGING_DESTINATION: 'messaging.destination.name',
  MESSAGING_MESSAGE_ID: 'messaging.message.id',
  MESSAGING_GROUP: 'messaging.consumer.group.name',
  TOOL: 'heddle.tool',
  METHOD: 'heddle.tool.method',
  PLUGIN: 'heddle.plugin',
  LANE: 'heddle.lane',
  REQUEST_ID: 'heddle.request_id',
  EVENT_ID: 'heddle.event.id',
  EVENT_ATTEMPT: 'heddle.event.attempt',
  EVENT_ATTEMPTS: 'heddle.event.attempts',
  EVENT_DEATHS: 'heddle.event.deaths',
  RETRY_DELAY: 'heddle.retry.delay_ms',
  JOB: 'heddle.job',
} as const

/** What events travel with is the runtime itself, whatever carries them. */
export const MESSAGING_SYSTEM = 'heddle'
