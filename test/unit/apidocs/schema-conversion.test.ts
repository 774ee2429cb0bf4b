import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { StandardSchemaV1 } from '../../../src/contracts/common.ts'
import { jsonSchemaOf, placed } from '../../../src/core/schemas/json-schema.ts'
import { exampleOf } from '../../../src/devtools/apidocs/schema-example.ts'

/** A schema of another library, with a description of its own. */
function foreign(describe: (options: { target: string }) => unknown): StandardSchemaV1 {
  const standard = {
    version: 1,
    vendor: 'other',
    validate: (value: unknown) => ({ value }),
    jsonSchema: { input: describe },
  }
  return { '~standard': standard } as StandardSchemaV1
}

test('a schema of any library that describes itself is shown, for HTTP and for events in their dialects', () => {
  const schema = foreign(({ target }) => ({ $schema: 'x', type: 'string', description: target }))
  assert.deepEqual(jsonSchemaOf(schema, 'http'), { type: 'string', description: 'draft-2020-12' })
  assert.deepEqual(jsonSchemaOf(schema, 'event'), { type: 'string', description: 'draft-07' })
})

test('whatever a schema says of itself, it is something that can be shown', () => {
  const loop: { self?: unknown } = {}
  loop.self = loop
  const odd = [undefined, null, 1, 'text', [], loop, { enum: ['x'.repeat(100_000)] }, { huge: 1n }]
  for (const said of odd)
    assert.deepEqual(
      Object.keys(
        jsonSchemaOf(
          foreign(() => said),
          'http',
        ),
      ),
      ['description'],
    )
  const thrower = foreign(() => {
    throw undefined
  })
  assert.deepEqual(Object.keys(jsonSchemaOf(thrower, 'http')), ['description'])
  // Each level is a schema of its own, so the conversion ends with a stack overflow.
  const endless = (): z.ZodType => z.object({ next: z.lazy(endless).optional() })
  assert.deepEqual(Object.keys(jsonSchemaOf(endless(), 'http')), ['description'])
})

test('references are moved to where the schema stands, and data that looks like them is left alone', () => {
  const schema = {
    $id: 'https://example.com/tree',
    properties: { $ref: { type: 'string' }, kid: { $ref: '#' }, other: { $ref: 'https://example.com/other' } },
    default: { $ref: '#' },
    $defs: { leaf: { items: { $ref: '#/$defs/leaf' } } },
  }
  assert.deepEqual(placed(schema, '#/components/schemas/Tree'), {
    properties: { $ref: { type: 'string' }, kid: { $ref: '#/components/schemas/Tree' }, other: {} },
    default: { $ref: '#' },
    $defs: { leaf: { items: { $ref: '#/components/schemas/Tree/$defs/leaf' } } },
  })
})

test('an example is taken by the schema that it was made for, and is left out where nothing tells', () => {
  const schemas = [
    z.string(),
    z.string().min(20).max(21),
    z.email(),
    z.uuid(),
    z.iso.datetime(),
    z.int().min(7),
    z.number().gt(2).lt(3.5),
    z.int().multipleOf(5).min(11),
    z.boolean(),
    z.null(),
    z.enum(['a', 'b']),
    z.array(z.int()).min(2),
    z.tuple([z.string(), z.int()]),
    z.object({ a: z.string().optional(), b: z.object({ c: z.literal(3) }) }),
    z.union([z.string().regex(/^\d{3}$/), z.int()]),
    z.string().regex(/^[^\p{Cc}]*$/u),
    z.object({ a: z.string() }).and(z.object({ b: z.int() })),
    z.string().nullable(),
    z.string().default('x'),
  ]
  for (const schema of schemas) {
    const description = jsonSchemaOf(schema, 'http')
    const example = exampleOf(description, 'name')
    assert.ok(example, JSON.stringify(description))
    assert.equal(
      schema.safeParse(example.value).success,
      true,
      `${JSON.stringify(example)} of ${JSON.stringify(description)}`,
    )
  }
  const silent = [
    z.string().regex(/^\d{5}$/),
    z.object({ zip: z.string().regex(/^\d{5}$/) }),
    z.date(),
    z.never(),
    z.string().min(10_000),
    z.array(z.string()).min(100),
    z.cuid2(),
  ]
  for (const schema of silent) assert.equal(exampleOf(jsonSchemaOf(schema, 'http'), 'name'), undefined)
})
