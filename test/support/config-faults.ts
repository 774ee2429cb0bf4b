import assert from 'node:assert/strict'
import { ConfigFaults, loadSettings } from '../../src/core/config/load.ts'

/** What is wrong with an environment; nothing where it is valid. */
export function faultsOf(env: Record<string, string>): readonly string[] {
  try {
    loadSettings(env)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigFaults, String(error))
    return error.faults
  }
}
