import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { VariableRow } from './row.ts'

const TOOLS_FOLDER = fileURLToPath(new URL('../../../tools', import.meta.url))

/** The name of the process, and its folders. */
export const IDENTITY_VARIABLES = {
  REPLICA_ID: {
    type: 'text',
    pattern: /^[A-Za-z0-9._:-]{1,200}$/,
    wanted: '1 to 200 of the characters A-Z a-z 0-9 . _ : -',
    // With port 0 the process id tells the replicas of one host apart.
    default: ({ httpPort, nodeAppInstance }) =>
      `${hostname()}:${httpPort || `pid${process.pid}`}${nodeAppInstance === undefined ? '' : `:${nodeAppInstance}`}`,
    effect: 'Name of this replica, unique and stable.',
  },
  DOMAINS_DIR: {
    type: 'folders',
    default: 'domains',
    unit: "folders separated by the platform's path delimiter",
    effect: 'Folders of domains (plugins, migrations, event contracts), in order.',
  },
  SYSTEM_DOMAIN: {
    type: 'boolean',
    default: true,
    effect: 'Whether the shipped domain `system`, which serves /system, is added where DOMAINS_DIR has none.',
  },
  TOOLS_DIR: { type: 'folder', default: TOOLS_FOLDER, effect: 'Folder of the active tools.' },
  TOOLS: {
    type: 'text',
    pattern: /^[\w-]+(?:=[\w-]+)?(?:,\s*[\w-]+(?:=[\w-]+)?)*$/,
    wanted: 'implementations like postgres,redis-state',
    default: undefined,
    effect:
      'Implementations that replace those of the same tools, from the folder of the active tools or the one of the parked ones beside it. Default: `heddle.tools` of `package.json`.',
  },
} as const satisfies Record<string, VariableRow>
