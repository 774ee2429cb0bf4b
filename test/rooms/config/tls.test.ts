import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadSettings } from '../../../src/core/config/load.ts'
import { authority } from '../../support/certificates.ts'
import { faultsOf as faultsIn } from '../../support/config-faults.ts'
import { folderOf } from '../../support/folder.ts'
import { SECRET } from '../../support/tool-runtime.ts'

const faultsOf = (env: Record<string, string>) => faultsIn({ AUTH_SECRET_KEY: SECRET, ...env })

test('a file of authorities must be there, be one, and be used', async (t) => {
  const folder = await folderOf(t, {})
  const { caFile } = await authority(folder, 'known')
  const wrong = join(folder, 'wrong.pem')
  writeFileSync(wrong, 'no certificate')
  for (const name of ['RDB', 'KV']) {
    const faults = (mode: string, file: string) => faultsOf({ [`${name}_TLS`]: mode, [`${name}_CA_FILE`]: file })
    assert.deepEqual(faults('verify', caFile), [])
    assert.match(faults('verify', wrong)[0]!, new RegExp(`^${name}_CA_FILE: expected a PEM file of certificates, got `))
    assert.match(faults('verify', join(folder, 'missing.pem'))[0]!, /ENOENT/)
    for (const mode of ['off', 'require'])
      assert.match(
        faults(mode, caFile)[0]!,
        new RegExp(`^${name}_CA_FILE: expected nothing unless ${name}_TLS is verify`),
      )
    assert.match(faultsOf({ [`${name}_TLS`]: 'on' })[0]!, /expected one of off, require, verify/)
  }
})

test('a password of the store that crosses a network as text is warned of', () => {
  const warned = (env: Record<string, string>): boolean =>
    loadSettings({ AUTH_SECRET_KEY: SECRET, ...env }).warnings.some((warning) => warning.includes('KV_TLS is not set'))
  const far = { KV_HOST: 'redis.example.com', KV_PASSWORD: 'secret' }
  assert.equal(warned(far), true)
  assert.equal(warned({ ...far, KV_TLS: 'require' }), false)
  assert.equal(warned({ ...far, KV_TLS: 'off' }), false)
  assert.equal(warned({ ...far, KV_PASSWORD: '' }), false)
  assert.equal(warned({ ...far, KV_HOST: 'localhost' }), false)
})
