// One piece of a plugin's code that runs, with its calls of tools.
import type { CallPart, FailurePart, WorkPart } from '../contracts/requests.ts'
import type { DescribeCall, OpenSpan, SentAnswer, TraceContext, TraceScope, Work } from '../contracts/tracing.ts'
import { NO_TRACE_CONTEXT, traceIdOf } from '../core/causality/context.ts'
import { codeOf, isInstance, member, messageOf, readable, stackOf } from '../core/errors/description.ts'
import { isSecretName, KnownSecrets, withoutSecrets } from '../core/schemas/secret-fields.ts'
import type { RecordWriter } from '../recording/ring.ts'
import { isOwnPage, type Keep } from './keep.ts'
import type { Payloads, WorkPayloads } from './payloads.ts'
import type { HistoryEntry } from './store.ts'

/** Calls of one work that are kept, and characters of a text. */
const CALLS_MAX = 500
/** Lines that a work logs are kept beyond them: up to this many calls in all. */
const CALLS_WITH_LOGS_MAX = 700
const TEXT_MAX = 2000
const STACK_MAX = 8000

/** A position in a work: calls that begin here belong below this call. */
export class WorkScope implements TraceScope {
  readonly work: OpenWork
  /** -1: the handler itself. */
  readonly parent: number
  /** The scope of the tracing; null while it is off. */
  readonly inner: TraceScope | null

  constructor(work: OpenWork | null, parent: number, inner: TraceScope | null) {
    this.work = work ?? (this as unknown as OpenWork)
    this.parent = parent
    this.inner = inner
  }

  get traceContext(): TraceContext {
    return this.inner === null ? NO_TRACE_CONTEXT : this.inner.traceContext
  }

  // What the scopes of the tracing have beside it: code of OpenTelemetry looks for them here.
  get context(): unknown {
    return (this.inner as { context?: unknown } | null)?.context
  }
  get isSampled(): boolean {
    return (this.inner as { isSampled?: boolean } | null)?.isSampled ?? false
  }
}

const NONE: Call[] = []

/** What a work needs of its thread. */
interface WorkRecorder {
  readonly thread: 'primary' | number
  readonly keep: Keep
  readonly nowMs: () => number
  readonly writer: Pick<RecordWriter<HistoryEntry>, 'write'>
  /** Null where they are not kept. */
  readonly payloads: Payloads | null
}

/** A piece of a plugin's code that runs. When it has ended it is written, if it is kept. */
export class OpenWork extends WorkScope implements OpenSpan {
  readonly #recorder: WorkRecorder
  readonly #name: string
  readonly #plugin: string
  readonly #work: Work
  /** The key of its request, or the id of the run of a job. */
  readonly #requestId: string | null
  readonly #startMs: number
  #calls = NONE
  #leftOut = 0
  #isOver = false
  /** Where payloads are kept. */
  #answer: SentAnswer | null = null

  constructor(recorder: WorkRecorder, inner: OpenSpan | null, name: string, plugin: string, work: Work) {
    super(null, -1, inner)
    this.#recorder = recorder
    this.#name = name
    this.#plugin = plugin
    this.#work = work
    this.#requestId = work.key ?? work.requestId
    this.#startMs = recorder.nowMs()
  }

  /** @returns the number of the call; -1 when it is not kept */
  begin(
    parent: number,
    tool: string,
    method: string,
    describe: DescribeCall | undefined,
    args: readonly unknown[],
  ): number {
    if (this.#isOver) return -1
    if (this.#calls.length >= (tool === 'logger' ? CALLS_WITH_LOGS_MAX : CALLS_MAX)) {
      this.#leftOut++
      return -1
    }
    if (this.#calls === NONE) this.#calls = []
    const fromMs = this.#recorder.nowMs() - this.#startMs
    const call = { parent, tool, method, describe, args, fromMs, ms: OPEN, error: NOTHING, result: undefined }
    return this.#calls.push(call) - 1
  }

  ended(index: number, result: unknown): void {
    const call = this.#calls[index]
    if (call === undefined) return
    call.ms = this.#recorder.nowMs() - this.#startMs - call.fromMs
    if (typeof result === 'string') call.result = result
  }

  failed(index: number, thrown: unknown): void {
    const call = this.#calls[index]
    if (call === undefined) return
    call.ms = this.#recorder.nowMs() - this.#startMs - call.fromMs
    call.error = thrown
  }

  end(): void {
    this.#opened?.end()
    this.#over(null)
  }

  fail(thrown: unknown): void {
    this.#opened?.fail(thrown)
    this.#over(errorOf(thrown))
  }

  answered(answer: SentAnswer): void {
    if (this.#recorder.payloads !== null) this.#answer = answer
  }

  /** The span of the tracing. */
  get #opened(): OpenSpan | null {
    return this.inner as OpenSpan | null
  }

  #over(error: FailurePart | null): void {
    if (this.#isOver) return
    this.#isOver = true
    const { keep, nowMs } = this.#recorder
    const endMs = nowMs()
    const ms = endMs - this.#startMs
    // By the id that everything else of the request has, too.
    const id = this.#work.requestId ?? this.#requestId ?? this.#work.eventId ?? ''
    const isKept =
      error !== null ||
      (!this.#isOwnPage && keep.keeps(id, keep.kindOf(this.#name), ms, endMs)) ||
      (this.#work.kind === 'job' && keep.keepsRun(this.#name, this.#work.askedBy != null, ms, endMs)) ||
      this.#hasFailedCall()
    if (isKept) this.#write(ms, error)
    this.#calls = NONE
    this.#answer = null
  }

  /** Lanes serve none of them. */
  get #isOwnPage(): boolean {
    const { route } = this.#work
    return this.#recorder.thread === 'primary' && route !== undefined && isOwnPage(route.template.text)
  }

  // Apart, so that what is not kept makes no closure.
  #write(ms: number, error: FailurePart | null): void {
    this.#recorder.writer.write(() => this.#entry(ms, error, this.#calls))
  }

  get #user(): string | undefined {
    const { request, askedBy } = this.#work
    if (askedBy != null) return askedBy
    const { claims, userId } = request ?? {}
    return userId?.slice(0, USER_MAX) ?? (claims === undefined ? undefined : userOf(claims))
  }

  get #withheld(): string[] | undefined {
    const withheld = Object.keys(this.#work.request?.headers ?? {}).filter(isSecretName)
    return withheld.length === 0 ? undefined : withheld
  }

  #hasFailedCall(): boolean {
    return this.#calls !== NONE && this.#calls.some(({ error }) => error !== NOTHING)
  }

  /** Its JSON has no field that is undefined here. */
  #entry(ms: number, error: FailurePart | null, calls: readonly Call[]): WorkPart {
    const { kind, eventId, event, attempt } = this.#work
    const secrets = new KnownSecrets()
    for (const call of calls) addSecretsOf(call, secrets)
    const payloads = this.#recorder.payloads?.open(secrets) ?? null
    return {
      type: 'work',
      kind,
      name: this.#name,
      plugin: this.#plugin,
      thread: this.#recorder.thread,
      traceId: traceIdOf(this.traceContext) || undefined,
      requestId: this.#requestId,
      eventId,
      event,
      attempt,
      atMs: this.#startMs,
      ms,
      error: error === null ? undefined : shownError(error, secrets),
      user: this.#user,
      withheld: this.#withheld,
      ...payloads?.ofWork(this.#work, this.#answer),
      calls: calls.map((call) => callPartOf(call, payloads, secrets)),
      callsLeftOut: this.#leftOut || undefined,
    }
  }
}

const shownError = ({ type, message, stack }: FailurePart, secrets: KnownSecrets): FailurePart => ({
  type,
  message: secrets.hideIn(message),
  stack: secrets.hideIn(stack),
})

function errorOf(thrown: unknown): FailurePart {
  const type = codeOf(thrown) ?? (isInstance(thrown, Error) ? 'Error' : typeof thrown)
  const stack = (stackOf(thrown) ?? '').slice(0, STACK_MAX)
  return { type, message: messageOf(thrown).slice(0, TEXT_MAX), stack }
}

/** A call that was begun. Its arguments are looked at only if the work is kept. */
interface Call {
  parent: number
  tool: string
  method: string
  describe: DescribeCall | undefined
  args: readonly unknown[]
  fromMs: number
  ms: number
  error: unknown
  result: unknown
}

/** Of a call that has not ended. */
const OPEN = -1
/** Of a call that has thrown nothing: a plugin may throw `undefined`. */
const NOTHING = Symbol('nothing')

/** What is kept of a call. @param payloads null where they are not kept @param secrets of its work */
function callPartOf(
  { parent, tool, method, describe, args, fromMs, ms, error, result }: Call,
  payloads: WorkPayloads | null,
  secrets: KnownSecrets,
): CallPart {
  const entry: CallPart = { parent, tool, method, fromMs, ms: ms === OPEN ? null : ms }
  if (error !== NOTHING) entry.error = secrets.hideIn(messageOf(error)).slice(0, TEXT_MAX)
  const [first, second] = args
  if (tool === 'logger') {
    if (typeof first === 'string') entry.message = secrets.hideIn(first).slice(0, TEXT_MAX)
    if (typeof second === 'object' && second !== null) entry.fields = fieldsOf(second, secrets)
  } else if (tool === 'event_bus' || method === 'publish') {
    if (typeof first === 'string') entry.event = first
    if (method === 'publish' && typeof result === 'string') entry.eventId = result
    if (method === 'publish' && entry.event !== undefined) entry.payload = payloads?.event(entry.event, second)
  } else {
    const statement = describe?.(method, args)?.attributes?.['db.query.text']
    if (typeof statement === 'string') {
      entry.statement = statement.slice(0, TEXT_MAX)
      entry.values = payloads?.values(statement, args)
    }
  }
  return entry
}

/** Passwords, hashes and tokens that a call of `auth` got or gave. */
function addSecretsOf({ tool, args, result }: Call, secrets: KnownSecrets): void {
  if (tool !== 'auth') return
  for (const value of [...args, result]) if (typeof value === 'string') secrets.add(value)
}

/** What JSON cannot hold, or what is too long, is left out. */
function fieldsOf(fields: object, secrets: KnownSecrets): Record<string, unknown> {
  const json = readable(() => JSON.stringify(fields))
  if (json === undefined || json.length > TEXT_MAX) return {}
  return withoutSecrets(JSON.parse(json), null, secrets) as Record<string, unknown>
}

/** Where claims and sessions have their user, the surest first. */
const NAMES = ['sub', 'user_id', 'userId', 'user', 'id']
/** Characters of a user. */
const USER_MAX = 200

/** The user whom claims or a session are of; undefined where they name none. Claims are what a plugin has made: reading them may throw. */
export function userOf(claims: object): string | undefined {
  for (const name of NAMES) {
    const value = member(claims, name)
    if (typeof value === 'number' || (typeof value === 'string' && value !== ''))
      return String(value).slice(0, USER_MAX)
    if (typeof value === 'object' && value !== null && name === 'user') return userOf(value)
  }
  return undefined
}
