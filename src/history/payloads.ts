// What requests, events and statements carried, without secrets.
import type { StandardSchemaV1 } from '../contracts/common.ts'
import type { JsonSchema } from '../contracts/registry.ts'
import type { PayloadPart, WorkPart } from '../contracts/requests.ts'
import type { ReceivedRequest, ReceivedRoute, SentAnswer, Work } from '../contracts/tracing.ts'
import { readable } from '../core/errors/description.ts'
import { loadEventContracts } from '../core/schemas/event-contracts.ts'
import {
  isSecretName,
  isSecretText,
  type KnownSecrets,
  marksOf,
  SECRET,
  withoutSecrets,
  withoutSecretsInText,
} from '../core/schemas/secret-fields.ts'
import { isSql } from '../core/sql/fragment.ts'

/** Characters of one payload, and of the values of one statement; characters of all payloads of one work. */
const TEXT_MAX = 4096
const VALUES_MAX = 1024
const WORK_MAX = 65_536
/** Bytes of JSON that is read for its secrets: of more, nothing is kept. */
const READ_MAX = 262_144

/** What requests and events of one thread carry, without secrets: in development only. */
export class Payloads {
  readonly #domainsDirs: readonly string[]
  #events: ReadonlyMap<string, StandardSchemaV1> | null = null
  /** Some contracts could not be loaded. */
  #hasFaults = false
  #isLoading = false

  /** @param domainsDirs whose contracts say which fields of events are secret */
  constructor(domainsDirs: readonly string[]) {
    this.#domainsDirs = domainsDirs
  }

  /** Loads the contracts of the events. Until then their payloads are left out: what is secret in them is not known. */
  prepare(): void {
    if (this.#isLoading) return
    this.#isLoading = true
    void loadEventContracts(this.#domainsDirs).then(({ contracts, faults }) => {
      this.#hasFaults = faults.length > 0
      this.#events = new Map([...contracts].map(([event, { schema }]) => [event, schema]))
    })
  }

  /** Of one work. @param secrets of it: what is found is added */
  open(secrets: KnownSecrets): WorkPayloads {
    return new WorkPayloads(this, secrets)
  }

  /** What the contract of an event says of its fields; undefined where that is not known. */
  marksOf(event: string): JsonSchema | null | undefined {
    const schema = this.#events?.get(event)
    const isUnknown = this.#events === null || (schema === undefined && this.#hasFaults)
    return isUnknown ? undefined : marksOf(schema, 'event')
  }
}

/**
 * The payloads of one work, as far as its bound allows. What came may be anything: what cannot be read is left out, and so is from their JSON what is
 * undefined in them.
 */
export class WorkPayloads {
  readonly #ofThread: Payloads
  /** What was left out so far: it is a secret under any name. */
  readonly #secrets: KnownSecrets
  #left = WORK_MAX

  constructor(ofThread: Payloads, secrets: KnownSecrets) {
    this.#ofThread = ofThread
    this.#secrets = secrets
  }

  /** What a work got, and what it answered. */
  ofWork({ request, route, event, payload }: Work, answer: SentAnswer | null): Partial<WorkPart> {
    if (request !== undefined && route !== undefined)
      return { ...readable(() => this.#input(request, route)), answer: readable(() => this.#answer(answer, route)) }
    return { payload: event === undefined || payload === undefined ? undefined : this.event(event, payload) }
  }

  /** @param payload as it was published, or its JSON */
  event(event: string, payload: unknown): PayloadPart | undefined {
    return readable(() => {
      const json = typeof payload === 'string' ? payload : JSON.stringify(payload)
      return this.#json(json, '', this.#ofThread.marksOf(event))
    })
  }

  /** The values of a statement. @param args of the call */
  values(text: string, args: readonly unknown[]): PayloadPart | undefined {
    const values = isSql(args[0]) ? args[0].values : args[1]
    if (!Array.isArray(values) || values.length === 0) return undefined
    return readable(() =>
      this.#cut(JSON.stringify(shownValues(text, values, this.#secrets).map(plain)), '', VALUES_MAX),
    )
  }

  #input(request: ReceivedRequest, { template, options }: ReceivedRoute) {
    const { hasQuery, query, path, body, headers } = request
    const params: Record<string, unknown> = {}
    if (template.hasParameters) template.read(path, params)
    return {
      params: template.hasParameters ? this.#fields(params, options.params) : undefined,
      query: hasQuery ? this.#fields(fieldsOf(query), options.query) : undefined,
      body: this.#bytes(body, headers['content-type'] ?? '', options.body),
    }
  }

  #answer(answer: SentAnswer | null, { options }: ReceivedRoute): PayloadPart | undefined {
    if (answer === null) return undefined
    const type = /^content-type: *(.*)$/im.exec(answer.head)?.[1]?.trim() ?? 'application/json'
    return this.#bytes(answer.body, type, options.response)
  }

  #bytes(body: Uint8Array | string | null, type: string, schema: unknown): PayloadPart | undefined {
    if (body === null) return undefined
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength
    const [bare = ''] = type.toLowerCase().split(';', 1)
    const isText = /^text\/|[/+]json$|^application\/x-www-form-urlencoded$/.test(bare)
    if (bytes === 0) return undefined
    const boundary = bare === 'multipart/form-data' ? boundaryOf(type) : undefined
    if (bytes > READ_MAX && boundary === undefined) return { text: '', type, bytes }
    const text = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, bytes).toString('utf8')
    const marks = marksOf(schemaIn(schema), 'http')
    // What is not shown may hold secrets all the same, and its handler may take them elsewhere.
    if (boundary !== undefined) this.#stripped(formFieldsOf(text, boundary), marks ?? null)
    else if (!isText) this.#textOf(text, marks ?? null)
    if (!isText) return { text: '', type, bytes }
    if (bare.startsWith('text/')) return marks === undefined ? undefined : this.#cut(this.#textOf(text, marks), type)
    if (bare.endsWith('form-urlencoded')) return this.#fields(fieldsOf(text), schema, type)
    return this.#json(text, type, marks)
  }

  #fields(value: unknown, schema: unknown, type = ''): PayloadPart | undefined {
    const marks = marksOf(schemaIn(schema), 'http')
    return marks === undefined ? undefined : this.#cut(this.#stripped(value, marks), type)
  }

  /** JSON of a value without its secrets. */
  #stripped(value: unknown, marks: JsonSchema | null): string {
    return JSON.stringify(this.#withoutSecrets(() => withoutSecrets(value, marks, this.#secrets)))
  }

  #textOf(text: string, marks: JsonSchema | null): string {
    return this.#withoutSecrets(() => withoutSecretsInText(text, marks, this.#secrets))
  }

  /** A secret that was found at the end of a value may stand at its beginning, too. */
  #withoutSecrets<Shown>(strip: () => Shown): Shown {
    const { size } = this.#secrets
    const shown = strip()
    return this.#secrets.size === size ? shown : strip()
  }

  /** @param marks undefined: it is not known what is secret */
  #json(json: string, type: string, marks: JsonSchema | null | undefined): PayloadPart | undefined {
    if (marks === undefined) return undefined
    if (json.length > READ_MAX) return { text: '', type: type || undefined, bytes: Buffer.byteLength(json) }
    return this.#cut(this.#stripped(JSON.parse(json), marks), type)
  }

  #cut(text: string, type: string, most = TEXT_MAX): PayloadPart {
    const room = Math.min(most, this.#left)
    const shown = text.length > room ? `${text.slice(0, room)}…` : text
    this.#left = Math.max(0, this.#left - shown.length)
    return { text: shown, type: type || undefined, bytes: shown === text ? undefined : Buffer.byteLength(text) }
  }
}

/** A route that streams its body has a word instead of a schema. */
const schemaIn = (schema: unknown): StandardSchemaV1 | undefined =>
  typeof schema === 'string' ? undefined : (schema as StandardSchemaV1 | undefined)

/** A name that comes several times has a list. */
function fieldsOf(form: string | [string, string][]): Record<string, unknown> {
  const fields = new URLSearchParams(form)
  const names = [...new Set(fields.keys())]
  return Object.fromEntries(
    names.map((name) => {
      const values = fields.getAll(name)
      return [name, values.length > 1 ? values : values[0]]
    }),
  )
}

const boundaryOf = (type: string): string | undefined => /;\s*boundary="?([^";]+)/i.exec(type)?.[1]

/** The fields of a multipart form that are no files. */
function formFieldsOf(text: string, boundary: string): Record<string, unknown> {
  const parts = text.split(`--${boundary}`).slice(1, -1)
  const fields = parts.flatMap((part): [string, string][] => {
    const head = part.slice(0, part.indexOf('\r\n\r\n'))
    const name = /;\s*name="([^"]*)"/i.exec(head)?.[1]
    if (name === undefined || /;\s*filename\*?=/i.test(head)) return []
    return [[name, part.slice(head.length + 4, -2)]]
  })
  return fieldsOf(fields)
}

/** Values of a database that JSON lacks. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  return ArrayBuffer.isView(value) ? `(${value.byteLength} bytes)` : value
}

const INSERT = /\binsert\s+into\s+[^\s(]+\s*\(([^)]*)\)\s*values\s*/i
const COMPARED = /([\w".]+)\s*(?:=|<>|!=|<=?|>=?|\bis|\blike|\bilike)\s*\$(\d+)/gi
const PLACEHOLDER = /^\$(\d+)$/
const WORD = /[A-Za-z_]\w*/g

/**
 * The values of a statement, without those of columns that have the name of a secret, or that nobody knows in a statement that has such names.
 * @param found secrets, whatever the column
 */
export function shownValues(text: string, values: readonly unknown[], found: KnownSecrets): unknown[] {
  const columns = columnsOf(text)
  const hasSecret = (text.match(WORD) ?? []).some(isSecretName)
  return values.map((value, index) => {
    if (value === null) return value
    const column = columns.get(index + 1)
    const isSecret = column === undefined ? hasSecret : isSecretName(column)
    if (isSecret || isSecretText(value) || found.has(value)) return SECRET
    return typeof value === 'string' ? withoutSecretsInText(value, null, found) : value
  })
}

/** The column that each placeholder is stored in or compared with, as far as the text says. */
function columnsOf(text: string): Map<number, string> {
  const columns = new Map<number, string>()
  for (const [, column, number] of text.matchAll(COMPARED)) columns.set(Number(number), bare(column!))
  const insert = INSERT.exec(text)
  if (insert === null) return columns
  const names = insert[1]!.split(',').map((name) => bare(name.trim()))
  for (const row of rowsOf(text.slice(insert.index + insert[0].length))) {
    for (const [index, part] of row.entries()) {
      const number = PLACEHOLDER.exec(part)?.[1]
      if (number !== undefined && names[index] !== undefined) columns.set(Number(number), names[index])
    }
  }
  return columns
}

/** The rows of VALUES that hold nothing in brackets. */
const rowsOf = (text: string): string[][] =>
  [...text.matchAll(/\(([^()]*)\)/g)].map(([, row]) => row!.split(',').map((part) => part.trim()))

const bare = (column: string): string => column.replaceAll('"', '').split('.').at(-1)!
