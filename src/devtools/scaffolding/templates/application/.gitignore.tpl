node_modules/
data/
.env
*.env
*.log
