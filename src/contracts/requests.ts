/** Requests and runs of jobs, as the history keeps them. Times are milliseconds since the epoch, durations milliseconds, both with fractions. */

export interface RequestFilter {
  /** Most that are returned, 1 to 1000; default 100. */
  limit?: number
  /** Only those that have begun before this one, as `at_ms` of it says. */
  before?: number
  /** Only those that have begun since. */
  since?: number
  /** `4xx`, `5xx`, a status, `failed` (a status from 500 on, or something that it caused has failed), `open` or `unfinished`. */
  status?: string
  method?: string
  /** A part of the path or of its template. */
  route?: string
  /** A plugin, or a part of its name. */
  plugin?: string
  kind?: 'request' | 'job'
  /** The runs of this job: `<plugin>/<job>`. */
  job?: string
  /** What comes by the clock and went well, runs of jobs and health checks: left out, or nothing else. */
  noise?: 'without' | 'only'
  /** Of this user: the subject of the token, or the user of its session. */
  user?: string
  /** Of the process with this REPLICA_ID: several may share one history. */
  replica?: string
  /** Only those that took at least so long. */
  min_ms?: number
  /** A part of the path, of an error or of what was kept of it: statements, logs, events. */
  text?: string
}

/** One request, or one run of a job. */
export interface RequestSummary {
  /** The runtime's own: nobody can choose or foretell it. `job_…` of a run. */
  id: string
  /** The `x-request-id` that the client has chosen, which its answer has, too; null where it has chosen none. */
  client_id: string | null
  kind: 'request' | 'job'
  at_ms: number
  /** Until it was answered. Null: it is open, or its process died before. */
  duration_ms: number | null
  /** `ended`; `open`; or `unfinished`: its process died before it was answered, or the job had ended. */
  state: 'ended' | 'open' | 'unfinished'
  /** Null for a job, and before there is an answer. 0: the client was gone. */
  status: number | null
  /** Empty for a job. */
  method: string
  /** Without its query. Empty for a job. */
  path: string
  /** Path template; the name of a job. */
  route: string
  plugin: string
  /** -1: the primary itself. Null while it is not known. */
  lane: number | null
  replica: string
  /** The subject of its token, or the user of its session; null without one. Of the run of a job: who asked for it; null for a run by its schedule. */
  user: string | null
  /** It was answered with a status from 500 on, or something that it caused has failed. */
  failed: boolean
  /** The message of the first failure. */
  error: string | null
  /** HEDDLE_RELEASE of its process, by default the commit; null where neither is known. */
  release: string | null
  /**
   * Of a failure: the release with which failures of its kind began (one route, status and message but for numbers), if the history knew an
   * earlier release by then; else null.
   */
  began_with: string | null
}

/** What came in or went out, in development only. What the schema marks as secret, and what has the name of a secret, is `[secret]` in it. */
export interface PayloadPart {
  /** JSON, or the text; at most 4096 characters. Empty where it is no text, or too long to look for secrets in it. */
  text: string
  /** Content type of a body. */
  type?: string
  /** Of the whole, where the text is not the whole. */
  bytes?: number
}

/** Since one time, until before another, milliseconds since the epoch. */
export interface WorkSpan {
  sinceMs: number
  untilMs: number
}

/** What one handler did in a span of time. Milliseconds; null: not measured. */
export interface HandlerFigures {
  plugin: string
  /** A route, a subscriber, or a job. */
  kind: 'request' | 'event' | 'job'
  /** `GET /users/:id`, the name of the event, or that of the job. */
  name: string
  /** Attempts, for a subscriber. */
  calls: number
  /** Answers from 500 on, attempts that threw, runs that failed. */
  errors: number
  p50_ms: number | null
  p95_ms: number | null
  p99_ms: number | null
}

/** What the handlers did, as far as the history keeps it. */
export interface WorkReport {
  /** Of much work only the newest is counted: since then. */
  from_ms: number
  handlers: HandlerFigures[]
}

/** One call of a tool. */
export interface CallPart {
  /** Index of the call in whose function it was made, such as a transaction; -1: the handler itself. */
  parent: number
  tool: string
  method: string
  /** Since the work has begun. */
  fromMs: number
  /** Null: it had not ended when the work had. */
  ms: number | null
  /** The message of what it threw. */
  error?: string
  /** Of `db`: the statement, without values. */
  statement?: string
  /** Of `db`: the list of the statement's values. In development only. */
  values?: PayloadPart
  /** Of `event_bus`: the event that was published, and its id. */
  event?: string
  eventId?: string
  /** What was published. In development only. */
  payload?: PayloadPart
  /** Of `logger`: what was logged. */
  message?: string
  fields?: Record<string, unknown>
}

export interface FailurePart {
  /** The code of the error if it has one, else its name. */
  type: string
  message: string
  stack: string
}

/** A piece of a plugin's code that has ended: a handler, an attempt of a subscriber, a job. */
export interface WorkPart {
  type: 'work'
  kind: 'request' | 'event' | 'job' | 'socket'
  /** `<plugin>.<handler>`; of a job `<plugin>/<job>`. */
  name: string
  plugin: string
  thread: 'primary' | number
  /** The process where that was, if it was not that of the request. */
  replica?: string
  /** Where tracing is on. */
  traceId?: string
  /** A job's run has an id of its own, `job_…`. */
  requestId: string | null
  eventId: string | null
  event?: string
  attempt?: number
  atMs: number
  ms: number
  error?: FailurePart
  /** Of a request: the subject of its token, or the user of its session. Of the run of a job: who asked for it. */
  user?: string
  /** Of a request: the names of its headers that hold secrets, such as `authorization`. No header is kept. */
  withheld?: string[]
  /** Of a request, in development only: the parameters of its path, its query, its body, and the body of the answer. */
  params?: PayloadPart
  query?: PayloadPart
  body?: PayloadPart
  answer?: PayloadPart
  /** Of an event, in development only. */
  payload?: PayloadPart
  calls: CallPart[]
  /** Calls beyond the bound. */
  callsLeftOut?: number
}

/** A delivery that did not succeed at once, or that belongs to a request that is kept whole. */
export interface DeliveryPart {
  type: 'delivery'
  requestId: string | null
  eventId: string
  event: string
  /** The subscriber. */
  group: string
  /** The process where that was, if it was not that of the request. */
  replica?: string
  atMs: number
  ms: number
  isGivenUp: boolean
  steps: { name: string; atMs: number; delayMs?: number; attempt?: number }[]
}

/** A lane has died. */
export interface DeathPart {
  type: 'death'
  /** The process where that was, if it was not that of the request. */
  replica?: string
  atMs: number
  lane: number
  reason: string
  message: string
  plugin: string | null
  handler: string | null
  line: string | null
  stack: string[]
  /** Requests and events that it was at work on. */
  ids: string[]
}

/** A part of a request: what one plugin did, one delivery, or the death of a lane. */
export type RequestPart = WorkPart | DeliveryPart | DeathPart

export interface RequestDetail extends RequestSummary {
  /** In the order in which they have begun. */
  parts: RequestPart[]
}
