{
  "version": "0.2.0",
  "configurations": [
    {
      "name": "Serve, and load what is saved",
      "type": "node",
      "request": "launch",
      {{executable}}"program": "${workspaceFolder}/node_modules/heddle/dist/src/heddle.cjs",
      "args": [
        "dev"
      ],
      "console": "integratedTerminal",
      "skipFiles": [
        "<node_internals>/**",
        "**/node_modules/**"
      ]
    },
    {
      "name": "Test this file",
      "type": "node",
      "request": "launch",
      {{executable}}"runtimeArgs": [
        "--require",
        "${workspaceFolder}/node_modules/heddle/dist/src/preload.cjs",
        "--import",
        "tsx"
      ],
      "program": "${file}",
      "console": "integratedTerminal",
      "skipFiles": [
        "<node_internals>/**",
        "**/node_modules/**"
      ]
    },
    {
      "name": "Attach to npm run dev -- --inspect",
      "type": "node",
      "request": "attach",
      "port": 9229,
      "restart": true,
      "skipFiles": [
        "<node_internals>/**",
        "**/node_modules/**"
      ]
    }
  ]
}
