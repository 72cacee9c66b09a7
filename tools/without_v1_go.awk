# Deletes the lines of Go that end in the mark of version 1. It also deletes the comment right above such a line, which
# documents the declaration in the line.
/\/\/ v1-line$/  { comment = ""; next }
/^[ \t]*\/\//    { comment = comment $0 "\n"; next }
                 { printf "%s%s\n", comment, $0; comment = "" }
END              { printf "%s", comment }
