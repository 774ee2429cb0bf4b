// Whatever was thrown, as text and across threads.

// Taken before plugins can replace it.
const { stringify: toJson } = JSON

/** The longest note that `cutText` adds, characters. */
const CUT_NOTE_MAX = 48
const CUT_NOTE = /… \[cut: it had (\d+) characters\]$/

/** A text that is not longer than `maxLength`, but for the note that says how long it was before it was cut first. */
export function cutText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  const length = CUT_NOTE.exec(text.slice(-CUT_NOTE_MAX))?.[1] ?? text.length
  return `${text.slice(0, maxLength)}… [cut: it had ${length} characters]`
}

/**
 * What can be told of any value that was thrown, logged or returned. A plugin may throw anything: a proxy that was revoked, an error whose
 * getters throw, a symbol as its message. Nothing here throws, whatever it is given, and every text is a text.
 */

/** Characters of one text of an error. It is cut before anything looks at it: a plugin may put a whole document into its message. */
export const ERROR_TEXT_MAX = 4096
/** Of them, those of the message at the start of a stack. The frames have the rest. */
const STACK_HEAD_MAX = 1024
/** Characters of a class name that V8 puts before the message. */
const NAME_MAX = 200
/** Characters of `details` as JSON. */
const DETAILS_MAX = 65_536

const UNREADABLE = 'a value that cannot be read'
/** Errors of an AggregateError that are told. */
const GATHERED_MAX = 3
/** A cause may be its own. */
const CAUSES_MAX = 5

/** A value that was thrown, as plain texts. */
interface Description {
  message: string
  /** Only where the value is an error that has one. */
  stack?: string
  code?: string
  /** As the value has them: they may be no JSON. */
  details?: unknown
}

export function describe(value: unknown): Description {
  if (!isInstance(value, Error)) return { message: textOf(value) }
  const description: Description = { message: messageOf(value) }
  const stack = stackOf(value)
  const code = codeOf(value)
  const details = boundedDetails(member(value, 'details'))
  if (stack !== undefined) description.stack = stack
  if (code !== undefined) description.code = code
  if (details !== undefined) description.details = details
  return description
}

/** The message of anything that was thrown: an error's own, else its name, else its text. */
export function messageOf(thrown: unknown): string {
  if (!isInstance(thrown, Error)) return textOf(thrown)
  const text = withErrors(shownMember(thrown, 'message') || shownMember(thrown, 'name') || typeNameOf(thrown), thrown)
  const variable = hiddenIn(text)
  return variable === undefined ? text : `${text} (lanes do not see ${variable}: add it to LANE_ENV)`
}

/** What an AggregateError has gathered is what is wrong: its own message is 'All promises were rejected'. */
function withErrors(text: string, thrown: Error): string {
  const errors = isInstance(thrown, AggregateError) ? member(thrown, 'errors') : undefined
  if (!Array.isArray(errors) || errors.length === 0) return text
  const shown = errors.slice(0, GATHERED_MAX).map((error) => shownMember(Object(error), 'message') || textOf(error))
  const told = shown.filter((message, n) => shown.indexOf(message) === n && !text.includes(message))
  const left = errors.length - shown.length
  return cutError(
    [`${text}${told.length === 0 ? '' : ': '}${told.join('; ')}`, ...(left > 0 ? [`and ${left} more`] : [])].join('; '),
  )
}

/** Variables that the process has, and this lane's `process.env` has not: a library that misses one says its name at best. */
export const hiddenVariables = new Set<string>()
const VARIABLE = /\b[A-Z][A-Z\d]*_[A-Z\d_]+\b/g

function hiddenIn(text: string): string | undefined {
  if (hiddenVariables.size === 0 || text.endsWith('LANE_ENV)')) return undefined
  return text.match(VARIABLE)?.find((name) => hiddenVariables.has(name))
}

/** The first line of a message: what is wrong, without the lines that show where. */
export function headOf(message: string): string {
  return message.split('\n', 1)[0]!
}

/**
 * The message and those of the error's causes, where it does not hold them itself: a `fetch failed` says nothing without `connect ECONNREFUSED`.
 */
export function messageWithCauses(thrown: unknown): string {
  let text = messageOf(thrown)
  let cause = causeOf(thrown)
  for (let depth = 0; depth < CAUSES_MAX && isInstance(cause, Error); depth++) {
    // An AggregateError of a connection has a code and no message.
    const message = shownMember(cause, 'message') || codeOf(cause) || messageOf(cause)
    if (!text.includes(message)) text += `: ${message}`
    cause = causeOf(cause)
  }
  return cutError(text)
}

/** The stack of an error; undefined where there is none that can be read. */
export function stackOf(thrown: unknown): string | undefined {
  const stack = isInstance(thrown, Error) ? member(thrown, 'stack') : undefined
  if (typeof stack !== 'string') return undefined
  return stack.length <= ERROR_TEXT_MAX ? stack : cutStack(stack, member(thrown, 'message'))
}

/** The stack of an error and those of its causes; where it has none, what kind of value was thrown. */
export function originOf(thrown: unknown): string[] {
  const lines: string[] = []
  let each = thrown
  for (let depth = 0; depth <= CAUSES_MAX && each !== undefined && each !== null; depth++) {
    const stack = stackOf(each)
    const head = depth === 0 ? '' : 'caused by '
    lines.push(`${head}${stack?.includes('\n') ? stack : `${typeNameOf(each)} without a stack: ${messageOf(each)}`}`)
    each = causeOf(each)
  }
  return lines
}

/** The name of an error; empty where there is none that can be read. */
export const nameOf = (thrown: Error): string => shownMember(thrown, 'name')

/** The code of an error; undefined where there is none that is a text. */
export function codeOf(thrown: unknown): string | undefined {
  const code = member(thrown, 'code')
  return typeof code === 'string' ? cutError(code) : undefined
}

/** With its note at most ERROR_TEXT_MAX characters. */
function cutError(text: string, max = ERROR_TEXT_MAX): string {
  return text.length <= max ? text : cutText(text, max - CUT_NOTE_MAX)
}

/** A stack whose message is long keeps its innermost frames. */
function cutStack(stack: string, message: unknown): string {
  const at =
    typeof message === 'string'
      ? stack.slice(0, NAME_MAX + ERROR_TEXT_MAX).indexOf(message.slice(0, ERROR_TEXT_MAX))
      : -1
  const from = at < 0 ? lateFrames(stack) : at + (message as string).length
  const head = cutError(stack.slice(0, Math.min(from, ERROR_TEXT_MAX)), STACK_HEAD_MAX)
  const frames = stack.slice(from, from + ERROR_TEXT_MAX - head.length)
  return head + frames.slice(0, Math.max(0, frames.lastIndexOf('\n')))
}

/** Where the frames begin that stand within the last ERROR_TEXT_MAX characters of a stack. */
function lateFrames(stack: string): number {
  const from = Math.max(0, stack.length - ERROR_TEXT_MAX)
  const at = stack.indexOf('\n    at ', from)
  return at < 0 ? stack.length : at
}

/** `instanceof`, which throws for some proxies. */
export function isInstance<T>(value: unknown, type: abstract new (...args: never[]) => T): value is T {
  return readable(() => value instanceof type) === true
}

/** The names of an object's own members; none where they cannot be read. */
export const namesIn = (value: object): string[] => readable(() => Object.keys(value)) ?? []

/** The cause of an error; undefined where there is none. */
export const causeOf = (thrown: unknown): unknown => member(thrown, 'cause')

/** Any value as text. An object whose JSON is longer than `max` is its type. */
export function textOf(value: unknown, max = ERROR_TEXT_MAX): string {
  if (typeof value === 'string') return cutError(value, max)
  try {
    // Only objects need their JSON, and only they and functions run code here.
    return cutError((typeof value === 'object' ? boundedJson(value, max) : undefined) ?? String(value), max)
  } catch {
    return typeNameOf(value)
  }
}

/** The JSON of a value. @throws where it is longer, after that many characters */
export function boundedJson(value: unknown, max: number): string | undefined {
  let left = max
  return toJson(value, (key: string, member: unknown) => {
    // Of bytes a key is made for each before one of them is seen.
    left -=
      key.length + (typeof member === 'string' ? member.length : ArrayBuffer.isView(member) ? member.byteLength : 2)
    if (left < 0) throw new RangeError('too long')
    return member
  })
}

/** Undefined where they are too long, or no JSON. */
const boundedDetails = (details: unknown): unknown =>
  typeof details === 'object' && readable(() => boundedJson(details, DETAILS_MAX)) === undefined ? undefined : details

function typeNameOf(value: unknown): string {
  try {
    return Object.prototype.toString.call(value)
  } catch {
    return UNREADABLE
  }
}

function shownMember(value: object, name: string): string {
  const text = member(value, name)
  return text === undefined ? '' : textOf(text)
}

/** A member of a value; undefined where there is none, or it cannot be read. */
export const member = (value: unknown, name: string): unknown =>
  readable(() => (value as Record<string, unknown> | null | undefined)?.[name])

/** What a look at something gives; undefined where it throws. */
export function readable<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}
