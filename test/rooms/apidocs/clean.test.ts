import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { OpenApiDocument } from '#heddle'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { referencesOf } from './schema-check.ts'

const SHOP = fileURLToPath(new URL('../../shop/application/domains', import.meta.url))

for (const [name, domains] of [
  ['shipped domains', SHIPPED],
  ['shop', SHOP],
] as const) {
  test(`linters find nothing in the documents of the ${name}`, { timeout: 60_000 }, async (t) => {
    const env = { SQLITE_PATH: join(await folderOf(t, {}), 'lint.db'), SYSTEM_DOMAIN: 'true' }
    const heddle = await startHeddle(t, { domains: [domains], lanes: 1, env })
    const openApi: OpenApiDocument = (await heddle.json('/system/openapi.json')).body
    assert.deepEqual(openApiFaults(openApi), [])
  })
}

/** Rules of `redocly lint` (recommended) and of spectral (`spectral:oas`) that a valid document may break, by their names there. Ids and tags: `documents.test.ts`. */
function openApiFaults(document: OpenApiDocument): string[] {
  const faults: string[] = []
  if (!document.info.license?.name) faults.push('info-license')
  if (!document.info.description) faults.push('info-description')
  if (!document.info.contact) faults.push('info-contact')
  for (const { name, description } of document.tags) if (!description) faults.push(`tag-description: ${name}`)
  for (const [path, item] of Object.entries(document.paths)) {
    if (path.endsWith('/') || path.includes('?')) faults.push(`path-keys: ${path}`)
    for (const [method, operation] of Object.entries(item)) {
      const missing = {
        'operation-summary': !operation.summary,
        'operation-description': !operation.description,
        'security-defined': !Array.isArray(operation.security),
        'operation-2xx-response': !Object.keys(operation.responses).some((status) => /^(?:101|2..)$/.test(status)),
        'operation-4xx-response': !Object.keys(operation.responses).some((status) => /^4/.test(status)),
      }
      for (const [rule, isBroken] of Object.entries(missing)) if (isBroken) faults.push(`${rule}: ${method} ${path}`)
      for (const name of operation.security.flatMap(Object.keys)) {
        if (!(name in document.components.securitySchemes)) faults.push(`security-defined: ${name}`)
      }
    }
  }
  const used = new Set(referencesOf(document))
  for (const kind of ['schemas', 'responses'] as const) {
    for (const name of Object.keys(document.components[kind])) {
      if (!used.has(`#/components/${kind}/${name}`)) faults.push(`no-unused-components: ${name}`)
    }
  }
  return faults
}
