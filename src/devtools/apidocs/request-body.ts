import type { BodyKind } from '../../contracts/request-body.ts'
import type { JsonSchema, RouteInfo } from '../../contracts/route-info.ts'
import { isPlainObject } from '../../core/collections/plain-object.ts'
import { resolved } from '../../core/schemas/json-schema.ts'
import type { Components } from './components.ts'
import { typeName } from './operation-ids.ts'
import { exampleOf } from './schema-example.ts'

export interface RequestBody {
  description?: string
  required: boolean
  content: Record<string, { schema?: JsonSchema; example?: unknown }>
}

const FORM = 'application/x-www-form-urlencoded'
const UPLOAD = 'multipart/form-data'
export const WITH_BODY = new Set(['POST', 'PUT', 'PATCH'])
const OPEN = { type: 'object', additionalProperties: true }

/** The body of a request; undefined for methods whose body is not read. */
export function requestBodyOf(
  { method, schemas, has_raw_body, streamed_body }: RouteInfo,
  id: string,
  components: Components,
): RequestBody | undefined {
  const { body } = schemas
  if (streamed_body !== null) return streamedBody(streamed_body)
  if (has_raw_body && WITH_BODY.has(method)) return rawBody()
  if (body === undefined) return WITH_BODY.has(method) ? anyBody() : undefined
  const schema = components.schema(`${typeName(id)}Body`, body)
  const example = exampleOf(body, 'text')
  const media = { schema, ...(example === undefined ? {} : { example: example.value }) }
  const content: RequestBody['content'] = { 'application/json': media }
  if (isForm(body)) {
    content[FORM] = media
    content[UPLOAD] = media
  }
  return { required: needsBody(body), content }
}

function streamedBody(kind: BodyKind): RequestBody {
  return kind === 'multipart'
    ? {
        description: 'A form, whose parts are read while they come.',
        required: true,
        content: { [UPLOAD]: { schema: OPEN } },
      }
    : { description: 'Bytes of any type, which are read while they come.', required: false, content: { '*/*': {} } }
}

function rawBody(): RequestBody {
  return {
    description: 'Bytes of any type, which the handler gets as they came.',
    required: false,
    content: { '*/*': {} },
  }
}

function anyBody(): RequestBody {
  const description =
    'Nothing is asked of it. Fields of a JSON object or a form become input of the handler, files of a form too; anything else it gets as it is.'
  const content = {
    'application/json': { schema: {} },
    [FORM]: { schema: OPEN },
    [UPLOAD]: { schema: OPEN },
    'application/octet-stream': {},
  }
  return { description, required: false, content }
}

/** An empty body counts as an empty object. */
export function needsBody(root: JsonSchema): boolean {
  const schema = resolved(root, root)
  if (schema === undefined || schema.type !== 'object') return Object.keys(root).some((key) => key !== 'description')
  return Array.isArray(schema.required) && schema.required.length > 0
}

/** True when a form can hold a value for the schema, although all fields of a form are texts. */
export function isForm(root: JsonSchema): boolean {
  const schema = resolved(root, root)
  if (schema?.type !== 'object' || !isPlainObject(schema.properties)) return false
  return Object.values(schema.properties).every((property) => takesText(root, property))
}

function takesText(root: JsonSchema, given: unknown): boolean {
  const schema = isPlainObject(given) ? resolved(root, given) : undefined
  if (schema === undefined) return false
  const choice = schema.anyOf ?? schema.oneOf
  if (Array.isArray(choice)) return choice.some((item) => takesText(root, item))
  return schema.type === 'string'
}
