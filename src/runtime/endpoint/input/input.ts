// The data that a handler gets: of query, body and path.

import { isUtf8 } from 'node:buffer'
import type { StandardIssue, StandardSchemaV1 } from '../../../contracts/common.ts'
import type { Data, UploadedFile } from '../../../contracts/http-request.ts'
import { HeddleError } from '../../../core/errors/catalogue.ts'
import { readable } from '../../../core/errors/description.ts'
import { withoutBlanks } from '../../../core/http/http-error.ts'
import { readParameters } from '../../../core/http/parameters.ts'
import { ownWork } from '../../../core/schedule/own-work.ts'
import { faultsOf, isPlainObject } from '../../../core/schemas/standard-schema.ts'
import type { RequestFrame } from '../../../transport/frames/request-frame.ts'
import type { RequestContext } from '../context.ts'
import type { RouteOptions, ServedRoute } from '../route.ts'
import { refuseForbiddenKeys } from './key-scanner.ts'
import { parseMultipart } from './multipart.ts'
import { isReservedKey, parseForm, parseJsonBody } from './parse.ts'

// Taken before plugins can replace it.
const { parse: parseJson } = JSON

/**
 * Reads the handler's `data`. Without a schema: query, then body fields, then path parameters; later wins. With one: what schemas have
 * validated, and the path parameters. What no schema has validated is `context.query`, `context.body` and `context.files` alone.
 * Returns it at once when nothing in it has to be awaited.
 */
export function readInput(
  frame: RequestFrame,
  { method, template, options: schemas }: ServedRoute,
  context: RequestContext,
): Data | Promise<Data> {
  const params: Data = {}
  // Its handler parses the body by itself.
  if (frame.body !== null && (method === 'ALL' || schemas.rawBody)) refuseForbiddenKeys(frame.body)
  // A fetch handler reads the request itself.
  if (method === 'ALL') return params
  if (template.hasParameters) template.read(frame.path, params)
  const validated = schemas.query !== undefined || schemas.params !== undefined || schemas.body !== undefined
  const isBodiless = frame.body === null || schemas.rawBody === true
  if (isBodiless && !frame.hasQuery && !validated) return params
  if (isBodiless && !validated) {
    const data: Data = {}
    parseForm(frame.query, data, 'query')
    return Object.assign(data, params)
  }
  return readAll(frame, params, schemas, context)
}

async function readAll(
  frame: RequestFrame,
  params: Data,
  schemas: RouteOptions,
  context: RequestContext,
): Promise<Data> {
  const issues: StandardIssue[] = []
  const form: Form = { isForm: false, files: undefined }
  const { body, rawBody } = schemas
  const validated = body !== undefined || schemas.query !== undefined || schemas.params !== undefined
  // Refused when it is malformed, whether a schema reads it or not.
  let query: unknown = frame.hasQuery ? context.query : {}
  let fields: unknown = rawBody ? undefined : await readBody(frame, body !== undefined, context, form)
  if (form.files !== undefined) context.files = form.files
  if (schemas.query) query = await validate(schemas.query, query, true, issues)
  if (body) {
    // A missing body is validated as an empty object. JSON's null is a value of its own.
    const given = fields ?? (context.body === undefined ? {} : context.body)
    fields = await validate(body, given, form.isForm, issues)
  }
  const named = schemas.params ? await validate(schemas.params, params, false, issues) : params
  if (issues.length > 0) throw new HeddleError('HTTP_VALIDATION', undefined, { details: faultsOf(issues) })
  if (fields !== undefined && (!isPlainObject(fields) || (validated && !body))) context.body = fields
  const checked = validated ? [schemas.query && query, body && fields, named] : [query, fields, named]
  const data: Data = Object.assign({}, ...checked.filter(isPlainObject))
  // Not enumerable beside validated fields: `...rest` of them has no files.
  if (form.files !== undefined) {
    const enumerable = !validated
    Object.defineProperty(data, '_files', { value: form.files, enumerable, writable: true, configurable: true })
  }
  return data
}

/** What the parser knows of a body beside its fields. */
interface Form {
  /** All of its values are text. */
  isForm: boolean
  files: readonly UploadedFile[] | undefined
}

/** The fields of the body; undefined when it has none, and `context.body` is the body itself. */
async function readBody(
  frame: RequestFrame,
  wanted: boolean,
  context: RequestContext,
  form: Form,
): Promise<Data | undefined> {
  const bytes = frame.body
  if (bytes === null) return undefined
  const contentType = frame.header('content-type') ?? ''
  const type = mediaTypeOf(contentType)
  const isJson = isJsonType(type)
  if (bytes.byteLength === 0) {
    // Clients name the type of each request, also of one that has no body by its method.
    if (isJson && WITH_BODY.has(frame.method))
      throw new HeddleError('HTTP_BAD_REQUEST', 'The body is empty, which is no JSON: send {} or no content-type')
    return undefined
  }
  // Names of codings are not case-sensitive, and a list may be empty.
  if (!/^(?:identity)?$/i.test(frame.header('content-encoding') ?? '')) {
    throw new HeddleError('HTTP_MEDIA_TYPE', 'Compressed request bodies are not supported')
  }
  if (isJson) {
    requireUtf8(contentType)
    const value = ownWork(parseJsonBody, bytes, context.maxKeys)
    if (!isPlainObject(value)) {
      context.body = value
      return undefined
    }
    return withoutReserved(value)
  }
  if (type === 'application/x-www-form-urlencoded') {
    requireUtf8(contentType)
    if (!isUtf8(bytes)) throw new HeddleError('HTTP_BAD_REQUEST', 'The form body is not valid UTF-8')
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
    if (wanted && isJsonObject(text)) throw new HeddleError('HTTP_MEDIA_TYPE', JSON_AS_FORM)
    const fields: Data = {}
    form.isForm = true
    ownWork(parseFormBody, text, fields)
    return fields
  }
  if (type === 'multipart/form-data') {
    const fields: Data = {}
    form.isForm = true
    form.files = await parseMultipart(bytes, contentType, fields)
    return fields
  }
  if (wanted)
    throw new HeddleError('HTTP_MEDIA_TYPE', `Unsupported media type ${type || '(none)'}; send application/json`)
  refuseForbiddenKeys(bytes)
  context.body = bytes
  return undefined
}

const parseFormBody = (text: string, into: Data): void => parseForm(text, into, 'form body')

const JSON_AS_FORM =
  "The body is JSON, but its content type says application/x-www-form-urlencoded, as `curl -d` sends it: add -H 'content-type: application/json'"

/** False for a form whose first field begins with a brace. */
const isJsonObject = (text: string): boolean => /^\s*\{/.test(text) && readable(() => parseJson(text)) !== undefined

const WITH_BODY = new Set(['POST', 'PUT', 'PATCH'])

/** Without parameters, in lower case. */
function mediaTypeOf(contentType: string): string {
  const semicolon = contentType.indexOf(';')
  return withoutBlanks(semicolon < 0 ? contentType : contentType.slice(0, semicolon)).toLowerCase()
}

const isJsonType = (type: string): boolean => type === 'application/json' || type.endsWith('+json')

function requireUtf8(contentType: string): void {
  if (!contentType.includes(';')) return
  const read = readParameters(contentType)
  if (read === null) throw new HeddleError('HTTP_MEDIA_TYPE', 'The content-type has malformed parameters')
  const charset = read.parameters.get('charset')
  if (charset !== undefined && !/^(utf-?8|us-ascii)$/i.test(charset)) {
    throw new HeddleError('HTTP_MEDIA_TYPE', `Unsupported charset ${charset}; send UTF-8`)
  }
}

function withoutReserved(value: Data): Data {
  for (const key of Object.keys(value)) if (isReservedKey(key)) delete value[key]
  return value
}

const check = (schema: StandardSchemaV1, value: unknown) => schema['~standard'].validate(value)

/** @param isText true for a query or a form, where a list of one looks like a single value */
async function validate(
  schema: StandardSchemaV1,
  value: unknown,
  isText: boolean,
  issues: StandardIssue[],
): Promise<unknown> {
  const outcome = ownWork(check, schema, value)
  let result = outcome instanceof Promise ? await outcome : outcome
  if (result.issues !== undefined && isText) {
    const listed = withLists(value as Data, result.issues)
    if (listed !== null) result = await schema['~standard'].validate(listed)
  }
  if (result.issues === undefined) return result.value
  for (const issue of result.issues) issues.push(issue)
  return value
}

/** The fields, with each text put into a list of one where the schema wants a list; null when there is none. */
function withLists(fields: Data, issues: readonly StandardIssue[]): Data | null {
  let listed: Data | null = null
  for (const { path, expected } of issues as readonly (StandardIssue & { expected?: unknown })[]) {
    // `expected` is not part of the specification, but the libraries agree on it: zod has `array`, others `Array` or `an array`.
    if (path?.length !== 1 || typeof expected !== 'string' || !/\barray\b/i.test(expected)) continue
    const key = String(typeof path[0] === 'object' ? path[0].key : path[0])
    if (typeof fields[key] !== 'string') continue
    listed ??= { ...fields }
    listed[key] = [fields[key]]
  }
  return listed
}
