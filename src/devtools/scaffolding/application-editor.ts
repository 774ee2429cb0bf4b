const SKIPPED = ['<node_internals>/**', '**/node_modules/**']
const PACKAGE = `\${workspaceFolder}/node_modules/heddle/dist/src`

/** What VS Code starts: the service, the test file that is open, or a debugger for a service that runs. The threads of lanes are debugged with it. */
const launches = (executable: { runtimeExecutable?: string }) => ({
  version: '0.2.0',
  configurations: [
    {
      name: 'Serve, and load what is saved',
      type: 'node',
      request: 'launch',
      ...executable,
      program: `${PACKAGE}/heddle.cjs`,
      args: ['dev'],
      console: 'integratedTerminal',
      skipFiles: SKIPPED,
    },
    {
      name: 'Test this file',
      type: 'node',
      request: 'launch',
      ...executable,
      runtimeArgs: ['--require', `${PACKAGE}/preload.cjs`, '--import', 'tsx'],
      program: `\${file}`,
      console: 'integratedTerminal',
      skipFiles: SKIPPED,
    },
    {
      name: 'Attach to npm run dev -- --inspect',
      type: 'node',
      request: 'attach',
      port: 9229,
      restart: true,
      skipFiles: SKIPPED,
    },
  ],
})

const OWN_NODE = { runtimeExecutable: `\${workspaceFolder}/node_modules/.bin/node` }

/** Files for editors. @param bringsNode the application has a Node of its own, the one at hand being too old */
export const editorFiles = (bringsNode: boolean): Record<string, string> => ({
  '.vscode/launch.json': `${JSON.stringify(launches(bringsNode ? OWN_NODE : {}), null, 2)}\n`,
})
