{
  "formatter": {
    "enabled": false
  },
  "assist": {
    "enabled": false
  },
  "linter": {
    "rules": {
      "preset": "none",
      "nursery": {
        "noFloatingPromises": "error"
      }
    }
  }
}
